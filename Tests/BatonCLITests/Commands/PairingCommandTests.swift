// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import SystemPackage
import Testing

@testable import BatonCLI

/// `baton account invite` and `baton account join`, as two processes on this machine.
@Suite("Pairing by the commands", .timeLimit(.minutes(5)), .serialized)
final class PairingCommandTests {
    private let folder = FileManager.default.temporaryDirectory.path + "/baton-pairing-\(UUID().uuidString)"
    private let key: String

    init() async throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let made = try await BuiltCommand.run(["account", "create", "--name", "laptop"], home: folder + "/laptop")
        try #require(made.status == 0, "\(made.errors)")
        key = folder + "/key"
        try Data(made.output.utf8).write(to: URL(filePath: key))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key)
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    private func start(_ home: String, _ arguments: String...) throws -> ChildProcess {
        var environment = ProcessInfo.processInfo.environment
        environment["BATON_HOME"] = folder + "/" + home
        environment["SWIFT_BACKTRACE"] = "enable=no"
        return try ChildProcess(
            [BuiltCommand.path.string] + arguments, environment: environment,
            output: .file("\(folder)/\(home).out"), error: .file("\(folder)/\(home).err"))
    }

    private func text(_ name: String) -> String {
        (try? String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8)) ?? ""
    }

    /// Opens an invitation, and returns the address of it on this machine.
    private func invite() async throws -> (process: ChildProcess, address: String) {
        let process = try start("laptop", "account", "invite", "--key-file", key)
        try await eventually("it invites: \(text("laptop.err"))") { text("laptop.err").contains("within 10 minutes") }
        // Without a port it is the usual one, and an IPv6 address with a port stands in brackets.
        let port = text("laptop.err").firstMatch(of: /--address [^ ]*(?:\]|\d\.\d+)(:\d+)\n/)?.output.1 ?? ""
        return (process, "127.0.0.1" + port)
    }

    @Test("A device joins by six digits, and no key is typed there")
    func joining() async throws {
        let (inviter, address) = try await invite()
        let joiner = try start("desktop", "account", "join", "--address", address, "--yes", "--name", "desktop")
        try await eventually("the user is asked: \(text("laptop.err"))") {
            text("laptop.err").hasSuffix("The six digits on its screen: ")
        }
        try await eventually("digits are shown") { text("desktop.out").hasSuffix("\n") }
        let digits = text("desktop.out")
        #expect(digits.wholeMatch(of: /\d{3} \d{3}\n/) != nil)
        inviter.input.write(Data("48291\n".utf8))
        try await eventually("all six are asked for") { text("laptop.err").contains("Type all six digits") }
        inviter.input.write(Data(digits.utf8))
        #expect(joiner.waitUntilExit().status == 0, "\(text("desktop.err"))")
        #expect(inviter.waitUntilExit().status == 0, "\(text("laptop.err"))")
        #expect(text("laptop.err").contains(/desktop \([a-z2-7]{8}\) is in the account now\.\n$/))
        let first = try await BuiltCommand.run(["account", "show"], home: folder + "/laptop")
        let second = try await BuiltCommand.run(["account", "show"], home: folder + "/desktop")
        #expect(first.output.split(separator: "\n")[0] == second.output.split(separator: "\n")[0])
        #expect(second.output.contains("desktop") && second.output.hasSuffix("not kept here\n"))
    }

    @Test("Wrong digits end it on both sides, and nothing is stored")
    func wrongDigits() async throws {
        let (inviter, address) = try await invite()
        let joiner = try start("desktop", "account", "join", "--address", address, "--yes")
        try await eventually("the user is asked") { text("laptop.err").contains("on its screen: ") }
        try await eventually("digits are shown") { text("desktop.out").hasSuffix("\n") }
        let wrong = text("desktop.out").hasPrefix("000 000") ? "000001\n" : "000000\n"
        inviter.input.write(Data((wrong + wrong + wrong).utf8))
        #expect(inviter.waitUntilExit().status == ExitStatus.refused.rawValue)
        #expect(joiner.waitUntilExit().status == ExitStatus.refused.rawValue)
        #expect(text("laptop.err").contains("Those are not its digits. 1 try is left: "))
        #expect(text("desktop.err").contains("baton: three tries failed there"))
        let none = try await BuiltCommand.run(["account", "show"], home: folder + "/desktop")
        #expect(none.status == ExitStatus.account.rawValue)
    }

    @Test(
        "Digits that are the rest of a pipe are enough, and the end of the input before them ends the invitation")
    func endOfInput() async throws {
        let (left, _) = try await invite()
        left.input.write(Data("123456\n".utf8))
        try await eventually("digits are not taken before the question") {
            text("laptop.err").contains("No device asks here yet")
        }
        try left.input.close()
        #expect(left.waitUntilExit().status == ExitStatus.interrupted.rawValue)

        let (inviter, address) = try await invite()
        let joiner = try start("desktop", "account", "join", "--address", address, "--yes", "--name", "desktop")
        try await eventually("the user is asked") { text("laptop.err").contains("on its screen: ") }
        try await eventually("digits are shown") { text("desktop.out").hasSuffix("\n") }
        inviter.input.write(Data(text("desktop.out").utf8))
        try inviter.input.close()
        #expect([inviter.waitUntilExit().status, joiner.waitUntilExit().status] == [0, 0], "\(text("laptop.err"))")
    }

    @Test("A lost session ends the invitation")
    func hangUp() async throws {
        let (inviter, _) = try await invite()
        inviter.signal(SIGHUP)
        #expect(inviter.waitUntilExit().status == ExitStatus.interrupted.rawValue)
    }

    @Test("An invitation without a key, and an address without an invitation, are refused in one sentence")
    func refusals() async throws {
        let piped = try await BuiltCommand.run(["account", "invite"], home: folder + "/laptop")
        #expect(piped.status == ExitStatus.usage.rawValue && piped.errors.contains("give --key-file"))
        let nobody = try await BuiltCommand.run(
            ["account", "join", "--address", "127.0.0.1:1", "--yes"], home: folder + "/desktop")
        #expect(nobody.status == ExitStatus.unreachable.rawValue)
        #expect(nobody.errors.hasPrefix("baton: nobody answers at 127.0.0.1:1: is the invitation still open"))
        let unasked = try await BuiltCommand.run(
            ["account", "join", "--address", "127.0.0.1:1"], home: folder + "/desktop")
        #expect(unasked.status == ExitStatus.usage.rawValue && unasked.errors.contains("--yes"))
        let trusting = try await BuiltCommand.run(["account", "join", "--yes"], home: folder + "/desktop")
        #expect(trusting.status == ExitStatus.usage.rawValue && trusting.errors.contains("--address"))
        let member = try await BuiltCommand.run(
            ["account", "join", "--address", "127.0.0.1:1", "--yes"], home: folder + "/laptop")
        #expect(member.status == ExitStatus.account.rawValue)
    }
}
