// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonEventLoop
import BatonTransport
import Foundation
import SystemPackage
import Testing

@testable import BatonCLI

/// The doctor reads real folders and files.
@Suite("The facts of a machine")
struct MachineFactsTests {
    /// The home of a device with an account, which is removed after the test.
    private final class Machine: Sendable {
        let folder = FileManager.default.temporaryDirectory.path + "/baton-doctor-\(UUID().uuidString)"
        let home: Home
        let store: AccountStore

        init() throws {
            home = try Home(environment: ["BATON_HOME": folder])
            store = AccountStore(folder: FilePath(home.stateFolder).appending("account"))
            _ = try store.create { _ throws(AccountError) in }
            for path in [home.configurationFolder, home.runtimeFolder] {
                try FileManager.default.createDirectory(
                    atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            }
        }

        deinit { try? FileManager.default.removeItem(atPath: folder) }

        var facts: MachineFacts { MachineFacts.read(home, store) }

        func write(_ text: String, to name: String) throws {
            let path = home.configurationFolder + "/" + name
            try Data(text.utf8).write(to: URL(filePath: path))
            try setMode(0o600, of: path)
        }

        func setMode(_ mode: Int, of path: String) throws {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        }
    }

    @Test("A machine with an account has no fault, and the doctor makes no file")
    func healthy() throws {
        let machine = try Machine()
        let before = try FileManager.default.subpathsOfDirectory(atPath: machine.folder).sorted()
        let facts = machine.facts
        #expect(facts.accountError == nil && facts.problems.isEmpty, "\(facts)")
        #expect(facts.handoff.isOn && facts.canWatch, "\(facts)")
        #expect(try FileManager.default.subpathsOfDirectory(atPath: machine.folder).sorted() == before)
    }

    @Test("Without any folder there is no account, and nothing else is wrong")
    func empty() throws {
        let home = try Home(environment: ["BATON_HOME": "/nonexistent/baton"])
        let facts = MachineFacts.read(home, AccountStore(folder: "/nonexistent/baton/state/account"))
        #expect(facts.accountError == .noAccount)
        #expect(facts.problems.isEmpty && facts.handoff.isOn, "\(facts)")
    }

    @Test("Each folder and file that others can use is found once")
    func rights() throws {
        let machine = try Machine()
        let account = machine.home.stateFolder + "/account"
        let key = account + "/device-key.der"
        for (path, mode) in [(account, 0o755), (key, 0o644), (machine.home.runtimeFolder, 0o770)] {
            let before = path == key ? 0o600 : 0o700
            try machine.setMode(mode, of: path)
            let problems = machine.facts.problems
            #expect(problems.map(\.sentence) == ["others can use \(path)"], "\(problems)")
            let (now, fixed) = (String(mode, radix: 8), String(before, radix: 8))
            #expect(problems.first?.evidence == ["mode \(now), user \(geteuid())"], "\(problems)")
            #expect(problems.first?.remedy == ["chmod \(fixed) \(path)"], "\(problems)")
            try machine.setMode(before, of: path)
        }
        try machine.setMode(0o755, of: machine.home.configurationFolder)
        #expect(machine.facts.problems.isEmpty)
        try machine.setMode(0o777, of: machine.home.configurationFolder)
        #expect(machine.facts.problems.map(\.remedy) == [["chmod go-w \(machine.home.configurationFolder)"]])
    }

    @Test("A program at the port of the node's settings is found")
    func port() throws {
        let machine = try Machine()
        let listener = try Listener(at: .ip(.ipv4Loopback, port: 0), on: EventLoop(name: "other"))
        let port = try #require(listener.localAddress.port)
        try machine.write("port=\(port)\n", to: "node")
        #expect(machine.facts.takenPort == port)
        listener.close()
        #expect(machine.facts.takenPort == nil)
    }

    @Test("Mistakes in the rules, the shared folders and the node's settings are found, with their place")
    func mistakes() throws {
        let machine = try Machine()
        try machine.write("allow\n", to: "accept-policy")
        try machine.write("Documents=relative\n", to: "shared-roots")
        try machine.write("port=80\n", to: "node")
        let mistakes = machine.facts.problems
        let paths = ["accept-policy", "shared-roots", "node"].map { machine.home.configurationFolder + "/" + $0 }
        #expect(mistakes.map(\.remedy.first) == paths.map { "${EDITOR:-vi} \($0)" })
        #expect(zip(mistakes, paths).allSatisfy { $0.sentence.hasPrefix("\($1): line 1") }, "\(mistakes)")
    }

    @Test("Handoff that is off, and a damaged switch, are read without a change of the marker")
    func handoff() throws {
        let machine = try Machine()
        try machine.write("off\n", to: "handoff")
        #expect(!machine.facts.handoff.isOn && machine.facts.handoff.problem == nil)
        try machine.write("odd\n", to: "handoff")
        #expect(machine.facts.handoff.problem != nil)
        #expect(!FileManager.default.fileExists(atPath: machine.home.stateFolder + "/handoff-switched"))
    }
}
