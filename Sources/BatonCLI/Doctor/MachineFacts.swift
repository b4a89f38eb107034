// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonDiscovery
import BatonDocuments
import BatonEventLoop
import BatonNode
import BatonTransport
import Glibc
import SystemPackage

/// The facts that the doctor sees of this machine without a node. ``Diagnosis/machine(_:node:)`` and
/// ``Diagnosis/network(_:unannounced:hasMetOthers:heard:devices:)`` judge them.
struct MachineFacts: Sendable {
    /// The watches that a program needs at least: 16. libdispatch has a few of its own.
    static let watches = 16
    /// Less space than this counts as a full disk: 16 MiB.
    private static let leastSpace: UInt64 = 16 << 20

    /// Nil if it cannot be used.
    var account: Account?
    /// Nil if the account can be used.
    var accountError: AccountError?
    /// What is wrong with the rights of Baton's files, with the disk, and with the files that the user writes.
    var problems: [Finding] = []
    var handoff = HandoffSwitch()
    /// Where the node listens for programs of this user.
    var socketPath = ""
    /// The port of the node in its settings, if a program listens there.
    var takenPort: UInt16?
    /// Whether `baton node install` can work.
    var canInstallNode = false
    /// The command that starts a node.
    var startCommand: String { canInstallNode ? "baton node install" : "baton node" }
    /// Whether a program of this user can watch what it has to. Without that no ``EventLoop`` may be made.
    var canWatch = true
    /// The path of the D-Bus system bus if nothing answers there.
    var silentBus: String?
    /// The users of the programs that answer multicast DNS beside the responder.
    var otherResponders: [String] = []
    var isAvahiInstalled = true
    var filter = PacketFilter.unknown

    /// Reads the facts; blocks on the disk. It changes nothing.
    static func read(_ home: Home, _ store: AccountStore) -> MachineFacts {
        let (configuration, state) = (FilePath(home.configurationFolder), FilePath(home.stateFolder))
        var facts = MachineFacts()
        do {
            facts.account = try store.load()
        } catch {
            facts.accountError = error
        }
        let folders = [state, store.folder, FilePath(home.runtimeFolder)]
        var files = [FilePath(home.socketPath)]
        // The store also checks each file in the folder of the account.
        if let path = facts.accountError?.exposedPath, !(folders + files).contains(path) { files.append(path) }
        facts.problems = [exposure(of: configuration, isSecret: false, remedy: "go-w")].compactMap { $0 }
        facts.problems += folders.compactMap { exposure(of: $0, isSecret: true, remedy: "700") }
        facts.problems += files.compactMap { exposure(of: $0, isSecret: true, remedy: "600") }
        let disks = [state, configuration].compactMap(unusableDisk)
        facts.problems += disks.count == 2 && disks[0].evidence == disks[1].evidence ? [disks[0]] : disks
        let (rules, roots) = (AcceptPolicyFile.path(in: home), SharedRootsFile.path(in: home))
        facts.problems += [
            mistake(in: rules, checkedBy: "baton policy check", AcceptPolicyFile.read),
            mistake(in: roots, checkedBy: "baton roots", SharedRootsFile.read),
            mistake(in: NodeSettings.path(in: home), checkedBy: "baton doctor", NodeSettings.read),
        ].compactMap { $0 }
        facts.handoff = HandoffSwitch(reading: HandoffSwitch.path(in: home), marker: HandoffSwitch.marker(in: home))
        facts.socketPath = home.socketPath
        if let port = try? NodeSettings.read(NodeSettings.path(in: home)).port,
            SocketTable.isListening(at: port, in: SocketTable.read("tcp"))
        {
            facts.takenPort = port
        }
        facts.canWatch = WatchLimit.hasRoom(for: watches)
        facts.silentBus = SystemBus.unreachablePath()
        facts.otherResponders = SocketTable.otherResponders(in: SocketTable.read("udp"))
        facts.isAvahiInstalled = access("/usr/sbin/avahi-daemon", X_OK) == 0
        return facts
    }

    /// Looks at a file or folder. Nil if it does not exist, or only this user may use it.
    ///
    /// - Parameters:
    ///   - isSecret: whether others may not read it either, as they may the folder of the configuration.
    ///   - change: the argument of `chmod` that takes the rights from others.
    private static func exposure(of path: FilePath, isSecret: Bool, remedy change: String) -> Finding? {
        // The folder of the configuration may be behind a link, as ``HomeFolder`` says.
        guard let status = try? path.stat(followTargetSymlink: !isSecret) else { return nil }
        let (owner, mode) = (status.userID.rawValue, UInt32(status.permissions.rawValue))
        let evidence = ["mode \(String(mode, radix: 8)), user \(owner)"]
        let word = ShellWord.quoted(path.string)
        guard owner == geteuid() else {
            return .problem(
                .wrongRights, of: "\(path) belongs to another user", evidence: evidence,
                remedy: ["sudo chown -R \(geteuid()) \(word)"])
        }
        guard mode & (isSecret ? 0o077 : 0o022) != 0 else { return nil }
        return .problem(
            .wrongRights, of: "others can \(isSecret ? "use" : "write to") \(path)", evidence: evidence,
            remedy: ["chmod \(change) \(word)"])
    }

    /// Looks at the disk of a folder, or of its nearest parent that exists. Nil if something can be stored there.
    private static func unusableDisk(of folder: FilePath) -> Finding? {
        var path = folder
        var status = statvfs()
        while statvfs(path.string, &status) != 0 {
            guard errno == ENOENT, path.removeLastComponent() else { return nil }
        }
        if Int(status.f_flag) & Int(ST_RDONLY) != 0 {
            return .problem(
                .diskReadOnly, of: "\(folder)", evidence: ["its file system is mounted read-only"],
                remedy: [
                    "sudo dmesg | tail # if the disk has errors, repair it first",
                    "sudo mount -o remount,rw \"$(findmnt -no TARGET -T \(ShellWord.quoted(path.string)))\"",
                ])
        }
        let space = UInt64(status.f_bavail) * UInt64(status.f_frsize)
        // A file system without a table of files, such as btrfs, says 0 of 0.
        guard space < leastSpace || (status.f_favail == 0 && status.f_files > 0) else { return nil }
        let files = HumanUnits.count(Int(clamping: status.f_favail), "file")
        return .problem(
            .diskFull, of: "\(folder)", evidence: ["\(HumanUnits.bytes(space)) and \(files) free"],
            remedy: ["df -h \(ShellWord.quoted(folder.string))"])
    }

    /// - Parameter command: tells the user whether the mistake is fixed.
    private static func mistake<Content>(
        in path: FilePath, checkedBy command: String, _ read: (FilePath) throws(ConfigurationError) -> Content
    ) -> Finding? {
        do {
            _ = try read(path)
            return nil
        } catch {
            return .problem(
                .rulesMistake, of: "\(path): \(error)",
                remedy: ["${EDITOR:-vi} \(ShellWord.quoted(path.string))", command])
        }
    }
}

extension AccountError {
    /// Whether the account's files have other contents than Baton wrote.
    var isDamage: Bool { if case .damaged = self { true } else { false } }

    /// The file or folder with wrong rights; nil if that is not the problem.
    var exposedPath: FilePath? {
        switch self {
        case .exposed(let path, _), .foreign(let path): path
        case .noAccount, .accountExists, .nodeRunning, .busy, .damaged, .unknownFormat, .invalidDeviceName, .system,
            .cryptography:
            nil
        }
    }
}
