// SPDX-License-Identifier: Apache-2.0

package import BatonAccount
import BatonCore
import BatonDiscovery
import BatonEventLoop
package import BatonTransport
import Glibc
import SystemPackage

/// The facts that the doctor sees of this machine without a node. ``Diagnosis/machine(_:node:)`` judges it.
package struct MachineFacts: Sendable {
    /// A file or folder that another user owns or may use.
    struct Exposure: Sendable, Hashable {
        let path: FilePath
        let owner: UInt32
        let mode: UInt32
        let kind: Kind

        enum Kind: Sendable { case secretFolder, secretFile, configuration }
    }

    struct UnusableDisk: Sendable, Hashable {
        enum Reason: Sendable, Hashable {
            case full(bytes: UInt64, files: UInt64)
            case readOnly(mount: FilePath)
        }

        let path: FilePath
        let reason: Reason
    }

    struct Mistake: Sendable, Hashable {
        let path: FilePath
        let error: ConfigurationError
        let checkedBy: String
    }

    /// The watches that a program needs at least: 16. libdispatch has a few of its own.
    package static let watches = 16
    /// Less space than this counts as a full disk: 16 MiB.
    static let leastSpace: UInt64 = 16 << 20
    var user = geteuid()
    /// Nil if the account can be used.
    var accountError: AccountError?
    var exposures: [Exposure] = []
    var unusableDisks: [UnusableDisk] = []
    var mistakes: [Mistake] = []
    var handoff = HandoffSwitch()
    /// Where the node listens for programs of this user.
    var socketPath = ""
    /// The port of the node in its settings, if a program listens there.
    var takenPort: UInt16?
    /// Whether `baton node install` can work.
    package var canInstallNode = false
    /// Whether a program of this user can watch what it has to. Without that no ``EventLoop`` may be made.
    package var canWatch = true
    /// The path of the D-Bus system bus if nothing answers there.
    var silentBus: String?

    /// Reads the facts; blocks on the disk. It changes nothing.
    package static func read(_ home: Home, _ store: AccountStore) -> MachineFacts {
        let (configuration, state) = (FilePath(home.configurationFolder), FilePath(home.stateFolder))
        var facts = MachineFacts()
        do {
            _ = try store.load()
        } catch {
            facts.accountError = error
        }
        let candidates: [(FilePath, Exposure.Kind)] = [
            (configuration, .configuration), (state, .secretFolder), (store.folder, .secretFolder),
            (FilePath(home.runtimeFolder), .secretFolder), (FilePath(home.socketPath), .secretFile),
        ]
        facts.exposures = candidates.compactMap { Exposure($0, $1) }
        // The store also checks each file in the folder of the account.
        if let path = facts.accountError?.exposedPath, !facts.exposures.contains(where: { $0.path == path }),
            let exposure = Exposure(path, .secretFile)
        {
            facts.exposures.append(exposure)
        }
        let disks = [UnusableDisk(of: state), UnusableDisk(of: configuration)].compactMap { $0 }
        facts.unusableDisks = disks.count == 2 && disks[0].reason == disks[1].reason ? [disks[0]] : disks
        let (rules, roots) = (AcceptPolicyFile.path(in: home), SharedRootsFile.path(in: home))
        facts.mistakes = [
            Mistake(rules, checkedBy: "baton policy check") { path throws(ConfigurationError) in
                _ = try AcceptPolicyFile.read(path, userHome: ConfigurationFile.userHome)
            },
            Mistake(roots, checkedBy: "baton roots") { path throws(ConfigurationError) in
                _ = try SharedRootsFile.read(path, userHome: ConfigurationFile.userHome)
            },
            Mistake(NodeSettings.path(in: home), checkedBy: "baton doctor") { path throws(ConfigurationError) in
                _ = try NodeSettings.read(path)
            },
        ].compactMap { $0 }
        facts.handoff = HandoffSwitch(reading: HandoffSwitch.path(in: home), marker: HandoffSwitch.marker(in: home))
        facts.socketPath = home.socketPath
        if let port = try? NodeSettings.read(NodeSettings.path(in: home)).port,
            SocketTable.isListening(at: port, in: ["/proc/net/tcp", "/proc/net/tcp6"].map(SocketTable.read))
        {
            facts.takenPort = port
        }
        facts.canWatch = WatchLimit.hasRoom(for: watches)
        facts.silentBus = SystemBus.unreachablePath()
        return facts
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

extension MachineFacts.Exposure {
    /// Looks at a file or folder. Nil if it does not exist, or only this user may use it.
    fileprivate init?(_ path: FilePath, _ kind: Kind) {
        // The folder of the configuration may be behind a link, as ``HomeFolder`` says.
        guard let status = try? path.stat(followTargetSymlink: kind == .configuration) else { return nil }
        let (owner, mode) = (status.userID.rawValue, status.permissions.rawValue)
        guard owner != geteuid() || mode & (kind == .configuration ? 0o022 : 0o077) != 0 else { return nil }
        self.init(path: path, owner: owner, mode: UInt32(mode), kind: kind)
    }
}

extension MachineFacts.UnusableDisk {
    /// Looks at the disk of a folder, or of its nearest parent that exists. Nil if something can be stored there.
    fileprivate init?(of folder: FilePath) {
        var path = folder
        var status = statvfs()
        while statvfs(path.string, &status) != 0 {
            guard errno == ENOENT, path.removeLastComponent() else { return nil }
        }
        let space = UInt64(status.f_bavail) * UInt64(status.f_frsize)
        if Int(status.f_flag) & Int(ST_RDONLY) != 0 {
            self.init(path: folder, reason: .readOnly(mount: Self.mount(of: path)))
            // A file system without a table of files, such as btrfs, says 0 of 0.
        } else if space < MachineFacts.leastSpace || (status.f_favail == 0 && status.f_files > 0) {
            self.init(path: folder, reason: .full(bytes: space, files: UInt64(status.f_favail)))
        } else {
            return nil
        }
    }

    /// The highest folder on the same file system.
    private static func mount(of path: FilePath) -> FilePath {
        let device = try? path.stat().deviceID
        var mount = path
        while mount.lastComponent != nil, (try? mount.removingLastComponent().stat().deviceID) == device {
            mount.removeLastComponent()
        }
        return mount
    }
}

extension MachineFacts.Mistake {
    fileprivate init?(
        _ path: FilePath, checkedBy command: String, reading: (FilePath) throws(ConfigurationError) -> Void
    ) {
        do {
            try reading(path)
            return nil
        } catch {
            self.init(path: path, error: error, checkedBy: command)
        }
    }
}
