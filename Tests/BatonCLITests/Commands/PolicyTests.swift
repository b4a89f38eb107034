// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Testing

@testable import BatonCLI

extension ScratchFolder {
    /// Writes the policy of this home.
    fileprivate func writePolicy(_ text: String) throws { try write(text, to: "config/accept-policy") }
}

@Suite("baton policy")
struct PolicyTests {
    @Test("the rules in force are shown, for people and as JSON, or that there are none")
    func show() async throws {
        let home = try ScratchFolder("policy")
        defer { home.remove() }
        let none = try await BuiltCommand.run(["policy"], home: home.path)
        #expect(none.status == 0 && none.output.isEmpty)
        #expect(none.errors.hasPrefix("Nothing is accepted for you: \(home.path)/config/accept-policy does not exist"))
        try home.writePolicy("# mine\nrefuse device=\"old\u{202E} tablet\"\n")
        let shown = try await BuiltCommand.run(["policy"], home: home.path)
        #expect(shown.output == "line 2  refuse device=\"old\\u{202e} tablet\"\n")
        let json = try await BuiltCommand.run(["policy", "show", "--json"], home: home.path)
        #expect(json.output == #"{"line":2,"action":"refuse","rule":"refuse device=\"old\u202e tablet\""}"# + "\n")
    }

    @Test("a check names the place of what is wrong, and folders that are missing")
    func check() async throws {
        let home = try ScratchFolder("policy")
        defer { home.remove() }
        try home.writePolicy("accept to=/nonexistent/scans\n")
        let right = try await BuiltCommand.run(["policy", "check"], home: home.path)
        #expect(right.status == 0)
        #expect(right.errors.contains("line 1: the folder /nonexistent/scans cannot be written to"))
        #expect(right.errors.contains("has no mistakes: 1 rule."))
        let draft = home.path + "/draft"
        try home.write("ask\nrefuse max=lots\n", to: "draft")
        let wrong = try await BuiltCommand.run(["policy", "check", draft], home: home.path)
        #expect(wrong.status == ExitStatus.usage.rawValue)
        #expect(
            wrong.errors == "baton: \(draft): line 2: \"lots\" is no size: "
                + "write 500, 100KB, 20MB, 1.5GB or 4GiB\n")
        try home.writePolicy("allow\n")
        let broken = try await BuiltCommand.run(["policy"], home: home.path)
        #expect(broken.status == ExitStatus.usage.rawValue && broken.output.isEmpty)
        #expect(broken.errors.contains("until it is fixed, its rules accept nothing and only refuse"))
        let missing = try await BuiltCommand.run(["policy", "check", "/nonexistent/x"], home: home.path)
        #expect(missing.status == ExitStatus.usage.rawValue)
    }
}
