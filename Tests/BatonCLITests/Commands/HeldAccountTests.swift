// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonProtocol
import BatonTestSupport
import Foundation
import Glibc
import Testing

import struct SystemPackage.FilePath

@testable import BatonCLI

/// A node, and commands that cannot reach it: real processes with a common state folder.
@Suite("An account that a node runs on", .timeLimit(.minutes(5)))
struct HeldAccountTests {
    /// A device with an account, and the id of another device to revoke.
    private final class Device: Sendable {
        private let scratch: ScratchFolder
        var folder: String { scratch.path }
        let lost: String

        init() async throws {
            scratch = try ScratchFolder("held")
            let folder = scratch.path
            let environment = Self.environment(folder, "a")
            let made = try await BuiltCommand.run(["account", "create"], environment: environment)
            try #require(made.status == 0, "\(made.errors)")
            try Data(made.output.utf8).write(to: URL(filePath: folder + "/key"))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: folder + "/key")
            let other = folder + "/other"
            let joined = try await BuiltCommand.run(
                ["account", "join", "--no-wait", "--key-file", folder + "/key"], home: other)
            try #require(joined.status == 0, "\(joined.errors)")
            let shown = try await BuiltCommand.run(["account", "show", "--json"], home: other)
            lost = String(shown.output.split(separator: "\"")[11])
        }

        /// The environment of a login with a run-time folder of this name.
        static func environment(_ folder: String, _ login: String) -> [String: String] {
            [
                "BATON_HOME": "", "HOME": folder, "XDG_CONFIG_HOME": folder + "/config",
                "XDG_STATE_HOME": folder + "/state", "XDG_RUNTIME_DIR": folder + "/" + login,
                "SWIFT_BACKTRACE": "enable=no", "AVAHI_COMPAT_NOWARN": "1",
            ]
        }

        func startNode(_ login: String) throws -> BuiltNode {
            try BuiltNode(Self.environment(folder, login), in: folder)
        }

        func run(_ login: String, _ arguments: String...) async throws -> BuiltCommand.Result {
            try await BuiltCommand.run(arguments, environment: Self.environment(folder, login))
        }

        func revoke(_ login: String, _ device: String? = nil) async throws -> BuiltCommand.Result {
            try await run(login, "devices", "revoke", device ?? lost, "--yes", "--key-file", folder + "/key")
        }

        /// The account on the disk.
        func account() throws -> Account {
            try AccountStore(folder: FilePath(folder + "/state/baton/account")).load()
        }

        /// The account's files and their contents, without the file of the devices that the node has met.
        func content() throws -> [String: Data] {
            let account = folder + "/state/baton/account"
            return try FileManager.default.contentsOfDirectory(atPath: account).reduce(into: [:]) { files, name in
                if name == "replay" || name == "devices" { return }
                files[name] = try Data(contentsOf: URL(filePath: account + "/" + name))
            }
        }

        /// Restores the files.
        func restore(_ content: [String: Data]) throws {
            for (name, data) in try self.content() {
                let file = URL(filePath: folder + "/state/baton/account/" + name)
                guard let before = content[name] else {
                    try FileManager.default.removeItem(at: file)
                    continue
                }
                if data != before { try before.write(to: file) }
            }
        }
    }

    /// A device that no other has met.
    private static func stranger() -> DeviceID {
        DeviceID(ed25519PublicKey: (0..<32).map { _ in UInt8.random(in: 0 ... .max) })
    }

    @Test("With another run-time folder nobody runs or writes beside a node, until it is killed")
    func otherRuntimeFolder() async throws {
        let device = try await Device()
        let first = try device.startNode("a")
        try await first.ready()
        let before = try device.content()

        let second = try device.startNode("b")
        #expect(await second.end() == ExitStatus.alreadyRunning.rawValue)
        #expect(second.said.contains("\(device.folder)/b/"), "\(second.said)")
        #expect(second.said.contains("XDG_RUNTIME_DIR"), "\(second.said)")
        let status = try await device.run("b", "status")
        #expect(status.status == ExitStatus.noNode.rawValue && status.errors.contains("XDG_RUNTIME_DIR"))
        for refused in [
            try await device.revoke("b"), try await device.run("b", "account", "leave", "--yes"),
            try await device.run("b", "account", "rotate", "--yes"),
            try await device.run("a", "account", "leave", "--yes"),
        ] {
            #expect(refused.status == ExitStatus.alreadyRunning.rawValue && refused.output.isEmpty)
            #expect(refused.errors.contains("nothing was changed"), "\(refused.errors)")
        }
        #expect(try device.content() == before)
        #expect(try await device.run("a", "status").status == 0)

        // The kernel releases the lock on the account when the node is killed.
        first.send(SIGKILL)
        #expect(await first.end() == SIGKILL)
        let revoked = try await device.revoke("b")
        #expect(revoked.status == 0 && revoked.errors.contains("is revoked"), "\(revoked.errors)")
        let third = try device.startNode("b")
        try await third.ready()
        third.send(SIGTERM)
        #expect(await third.end() == 0)
        #expect(try await device.run("b", "account", "leave", "--yes").status == 0)
    }

    @Test("A node that is kept from its account by another program's lock says so and ends")
    func locked() async throws {
        let device = try await Device()
        let around = device.folder + "/state/baton"
        let other = open(around, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { close(other) }
        try #require(flock(other, LOCK_EX) == 0)
        let node = try device.startNode("a")
        #expect(await node.end() == ExitStatus.account.rawValue)
        #expect(node.said.contains("another program has kept \(around) locked"), "\(node.said)")

        flock(other, LOCK_UN)
        let next = try device.startNode("a")
        try await next.ready()
        next.send(SIGTERM)
        #expect(await next.end() == 0)
    }

    @Test("What the node takes over while the key is typed is in what is signed then")
    func takenMeanwhile() async throws {
        let device = try await Device()
        let node = try device.startNode("a")
        try await node.ready()
        let other = Self.stranger()

        let log = device.folder + "/revoking.log"
        let environment = ProcessInfo.processInfo.environment.merging(Device.environment(device.folder, "a")) { $1 }
        let revoking = try ChildProcess(
            [BuiltCommand.path.string, "devices", "revoke", device.lost, "--yes"], environment: environment,
            output: .null, error: .file(log))
        let key = try String(contentsOfFile: device.folder + "/key", encoding: .utf8)
        try revoking.input.write(contentsOf: Data(key.filter { $0 != "\n" }.utf8))
        // The command reads the input after all other checks.
        let isRead = await eventually {
            var count: CInt = -1
            return ioctl(revoking.input.fileDescriptor, UInt(FIONREAD), &count) == 0 && count == 0
        }
        try #require(isRead)
        #expect(try await device.revoke("a", other.description).status == 0)
        try revoking.input.write(contentsOf: Data("\n".utf8))
        _ = await eventually { !revoking.isRunning }
        let said = try String(contentsOfFile: log, encoding: .utf8)
        #expect(revoking.ending == .exited(0) && said.contains("is revoked") && !said.contains("apart"), "\(said)")

        let state = try device.account().state
        #expect(state.number == 2 && !state.isApart)
        #expect(Set(state.revoked.map(\.description)) == [device.lost, other.description])
    }

    @Test("A revocation that leaves lists apart says so, as where the disk lacks one that the node has")
    func apart() async throws {
        let device = try await Device()
        let node = try device.startNode("a")
        try await node.ready()
        let before = try device.content()
        let other = Self.stranger()
        let first = try await device.revoke("a", other.description)
        #expect(first.status == 0 && !first.errors.contains("apart"), "\(first.errors)")
        try device.restore(before)
        let second = try await device.revoke("a")
        #expect(second.status == 0 && second.errors.contains("on devices that had not met"), "\(second.errors)")
        #expect(second.errors.contains(other.short) && second.errors.contains(String(device.lost.prefix(8))))
        #expect(try device.account().state.isApart)

        // Follow the advice.
        let third = try await device.revoke("a")
        #expect(third.status == 0 && !third.errors.contains("on devices that had not met"), "\(third.errors)")
        #expect(try !device.account().state.isApart)
    }

    @Test("A revocation is not written beside a node that does not answer, and is made when it does")
    func suspended() async throws {
        let device = try await Device()
        let node = try device.startNode("a")
        try await node.ready()
        let before = try device.content()

        node.send(SIGSTOP)
        let refused = try await device.revoke("a")
        node.send(SIGCONT)
        #expect(refused.status == ExitStatus.noNode.rawValue && refused.output.isEmpty)
        #expect(refused.errors.hasPrefix("baton: nothing was revoked: the node on this machine"), "\(refused.errors)")
        #expect(try device.content() == before)

        let revoked = try await device.revoke("a")
        #expect(revoked.status == 0 && !revoked.errors.contains("No node"), "\(revoked.errors)")
        #expect(try device.content()["account-state"] != nil)
    }
}
