// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import FoundationEssentials
import Subprocess
import SystemPackage
import Testing

@testable import BatonCLI

@Suite("The built command")
struct ProcessTests {
    @Test("help goes to standard output, with the exit codes and the commands")
    func help() async throws {
        let result = try await BuiltCommand.run(["--help"])
        #expect(result.status == 0)
        #expect(result.errors.isEmpty)
        for status in ExitStatus.allCases { #expect(result.output.contains(status.meaning)) }
        for command in ["account", "node", "status", "devices", "activities", "offer", "accept", "withdraw", "policy"] {
            #expect(result.output.contains("\n  \(command) "))
            let own = try await BuiltCommand.run([command, "--help"])
            #expect(own.status == 0)
        }
    }

    @Test(
        "without a node every command says so, and what to do",
        arguments: [
            ["status"], ["devices"], ["activities"], ["activities", "--watch"], ["accept"], ["accept", "--wait", "1"],
            ["withdraw", "3f"], ["offer", "--url", "https://swift.org"], ["offer", "--type", "org.example.a"],
        ])
    func noNode(_ arguments: [String]) async throws {
        let result = try await BuiltCommand.run(arguments)
        #expect(result.status == ExitStatus.noNode.rawValue)
        #expect(result.output.isEmpty)
        #expect(result.errors.hasPrefix("baton: no node is running here"))
        #expect(result.errors.contains("run `baton`, which makes one or joins yours"))
    }

    @Test(
        "wrong usage is one sentence on standard error",
        arguments: [
            ["bogus"], ["offer"], ["offer", "a", "--url", "https://b.c"],
            ["offer", "--type", "a", "--user-info", "[1]"],
            ["accept", "--wait", "x"], ["node", "--port", "80"], ["account", "join", "baton1-secret"],
        ])
    func usage(_ arguments: [String]) async throws {
        let result = try await BuiltCommand.run(arguments)
        #expect(result.status == ExitStatus.usage.rawValue)
        #expect(result.output.isEmpty)
        #expect(result.errors.hasPrefix("baton: "))
        #expect(!result.errors.contains("Error:"))
    }

    @Test("what is wrong with user info is told with its place")
    func userInfo() async throws {
        let result = try await BuiltCommand.run(["offer", "--type", "a", "--user-info", #"{"a":[{"$foo":1}]}"#])
        #expect(result.status == ExitStatus.usage.rawValue)
        #expect(result.errors.hasPrefix("baton: user info at a[0].$foo: there is no type $foo"))
    }

    @Test("an account: its key alone on standard output, once; joined by file and by standard input")
    func account() async throws {
        let folder = try ScratchFolder("cli")
        defer { folder.remove() }
        let first = try await BuiltCommand.run(["account", "create", "--name", "laptop"], home: folder.path + "/1")
        #expect(first.status == 0)
        #expect(first.output.wholeMatch(of: /baton1(-[0-9a-z]{1,4})+\n/) != nil)
        let key = first.output.filter { $0 != "\n" }
        #expect(!first.errors.contains(key))

        let again = try await BuiltCommand.run(["account", "create"], home: folder.path + "/1")
        #expect(again.status == ExitStatus.account.rawValue)
        #expect(again.output.isEmpty)

        let shown = try await BuiltCommand.run(["account", "show", "--json"], home: folder.path + "/1")
        #expect(shown.output.hasPrefix("{\"accountID\":\""))
        #expect(!shown.output.contains(key))

        let piped = try await BuiltCommand.run(
            ["account", "join", "--no-wait", "--name", "desktop"], home: folder.path + "/2",
            input: key.uppercased() + "\nmore")
        #expect(piped.status == 0)
        #expect(piped.output.isEmpty)
        let file = try folder.write(key + "\n", to: "key").string
        let joined = try await BuiltCommand.run(
            ["account", "join", "--no-wait", "--key-file", file], home: folder.path + "/3")
        #expect(joined.status == 0)
        let account = shown.output.split(separator: "\"")[3]
        for home in ["/2", "/3"] {
            let other = try await BuiltCommand.run(["account", "show"], home: folder.path + home)
            #expect(other.output.contains(account))
        }
        let noNode = try await BuiltCommand.run(["status"], home: folder.path + "/2")
        #expect(noNode.errors == "baton: no node is running here: start one with `baton node`\n")

        // Without a node the account itself gets the name.
        let renamed = try await BuiltCommand.run(["devices", "rename", "den"], home: folder.path + "/2")
        #expect(renamed.status == 0 && renamed.errors == "This device is den now.\n")
        let den = try await BuiltCommand.run(["account", "show", "--json"], home: folder.path + "/2")
        #expect(den.output.contains("\"den\""))
        let long = String(repeating: "n", count: 64)
        let tooLong = try await BuiltCommand.run(["devices", "rename", long], home: folder.path + "/2")
        #expect(tooLong.status == ExitStatus.usage.rawValue && tooLong.errors.contains("63 is the most"))
        let bytes = try ChildProcess.run(
            ["env", "BATON_HOME=\(folder.path)/2", "sh", "-c", "\"$0\" devices rename \"$(printf 'den\\377')\" 2>&1"]
                + [BuiltCommand.path.string])
        #expect(bytes.ending == .exited(ExitStatus.usage.rawValue))
        #expect(bytes.output == "baton: this device name cannot be used: it is not UTF-8\n")
        let unknown = try await BuiltCommand.run(["devices", "forget", "phone"], home: folder.path + "/2")
        #expect(unknown.status == ExitStatus.usage.rawValue && unknown.errors.contains("no device \"phone\" is known"))

        // Revoke without a node, by the id of a device that was never seen. The id is part of its certificate.
        let lost = try await BuiltCommand.run(["account", "show", "--json"], home: folder.path + "/3")
        let id = String(lost.output.split(separator: "\"")[11])
        for said in ["is revoked", "was revoked before"] {
            let revoked = try await BuiltCommand.run(
                ["devices", "revoke", id, "--yes"], home: folder.path + "/1", input: key)
            #expect(revoked.status == 0 && revoked.output.isEmpty)
            #expect(revoked.errors.contains(said), "\(revoked.errors)")
        }
        let foreign = try await BuiltCommand.run(["account", "create"], home: folder.path + "/4")
        let mistaken = try await BuiltCommand.run(
            ["devices", "revoke", id, "--yes"], home: folder.path + "/1", input: foreign.output)
        #expect(mistaken.status == ExitStatus.usage.rawValue && mistaken.errors.contains("another account"))

        let kept = try await BuiltCommand.run(["account", "rotate"], home: folder.path + "/1")
        #expect(kept.status == ExitStatus.usage.rawValue && kept.output.isEmpty)
        let rotated = try await BuiltCommand.run(["account", "rotate", "--yes"], home: folder.path + "/1")
        #expect(rotated.status == 0 && rotated.output.wholeMatch(of: /baton1(-[0-9a-z]{1,4})+\n/) != nil)
        #expect(rotated.output.filter { $0 != "\n" } != key && rotated.errors.contains("baton account leave"))
        let replaced = try await BuiltCommand.run(["account", "show"], home: folder.path + "/1")
        #expect(!replaced.output.contains(account) && replaced.output.contains("laptop"))

        let unasked = try await BuiltCommand.run(["account", "leave"], home: folder.path + "/2")
        #expect(unasked.status == ExitStatus.usage.rawValue)
        let left = try await BuiltCommand.run(["account", "leave", "--yes"], home: folder.path + "/2")
        #expect(left.status == 0)
        let gone = try await BuiltCommand.run(["account", "show"], home: folder.path + "/2")
        #expect(gone.status == ExitStatus.account.rawValue)
    }

    @Test("A question is asked until it is answered with yes or no, and no changes nothing")
    func confirmation() async throws {
        let folder = try ScratchFolder("cli")
        defer { folder.remove() }
        _ = try await BuiltCommand.run(["account", "create"], home: folder.path)
        let question = "leave everything as it is: "
        let kept = try TerminalDialogue.run(
            ["account", "leave"], home: folder.path, answers: [(question, "y"), (question, "no")])
        #expect(kept.status == ExitStatus.interrupted.rawValue, "\(kept)")
        #expect(kept.shown.contains("Nothing was changed."), "\(kept)")
        #expect(try await BuiltCommand.run(["account", "show"], home: folder.path).status == 0)
        let left = try TerminalDialogue.run(
            ["account", "leave"], home: folder.path, answers: [(question, "y"), (question, "yes")])
        #expect(left.status == 0, "\(left)")
        #expect(try await BuiltCommand.run(["account", "show"], home: folder.path).status != 0)
    }

    @Test("A mistyped account key is asked for again")
    func mistypedKey() async throws {
        let folder = try ScratchFolder("cli")
        defer { folder.remove() }
        let made = try await BuiltCommand.run(["account", "create"], home: folder.path + "/1")
        let key = made.output.filter { $0 != "\n" }
        let wrong = key.dropLast() + (key.hasSuffix("q") ? "p" : "q")
        let joined = try TerminalDialogue.run(
            ["account", "join", "--no-wait"], home: folder.path + "/2",
            answers: [("Account key: ", String(wrong)), ("Account key: ", key)])
        #expect(joined.status == 0 && joined.shown.contains("baton: "), "\(joined)")
        let piped = try await BuiltCommand.run(
            ["account", "join", "--no-wait"], home: folder.path + "/3", input: String(wrong))
        #expect(piped.status == ExitStatus.usage.rawValue)
    }

    @Test("An empty path is none, and not the folder that one is in", arguments: ["--to", "--against", "--file"])
    func emptyPath(option: String) async throws {
        let result = try await BuiltCommand.run(["accept", option, ""])
        #expect(result.status == ExitStatus.usage.rawValue && result.errors.contains(option), "\(result.errors)")
        let shared = try await BuiltCommand.run(["roots", "add", "docs", ""])
        #expect(shared.status == ExitStatus.usage.rawValue && shared.errors.contains("<folder>"), "\(shared.errors)")
    }

    @Test(
        "Where nobody would see the account key no account is made, and the one that there is stays",
        arguments: [">&-", ">/dev/null", ">&4"])
    func unreadKey(output: String) async throws {
        let folder = try ScratchFolder("cli")
        defer { folder.remove() }
        let made = try await BuiltCommand.run(["account", "create"], home: folder.path + "/old")
        #expect(made.status == 0)
        let shown = try await BuiltCommand.run(["account", "show"], home: folder.path + "/old")
        for (command, home) in [("create", "/new"), ("rotate --yes", "/old")] {
            // Descriptor 4 is a pipe without a reader.
            let script = "mkfifo \"$1\"; exec 3<>\"$1\" 4>\"$1\" 3<&-; exec \"$0\" account \(command) \(output)"
            let result = try await Subprocess.run(
                .path("/bin/sh"),
                arguments: ["-c", script, BuiltCommand.path.string, folder.path + home + "-pipe"],
                environment: .inherit.updating(["BATON_HOME": folder.path + home]), output: .discarded,
                error: .string(limit: 1 << 16))
            #expect(result.terminationStatus == .exited(output == ">&4" ? 78 : 64), "\(result.standardError)")
        }
        let none = try await BuiltCommand.run(["account", "show"], home: folder.path + "/new")
        #expect(none.status == ExitStatus.account.rawValue)
        #expect(try await BuiltCommand.run(["account", "show"], home: folder.path + "/old").output == shown.output)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path + "/old/state") == ["account"])
    }

    private static let key = "baton1-qqqq-syqc-yq5r-qwzq-fpg9-scrg-wpug-pzys-nrf6-tlt"
    private static let refusal =
        "baton: an account key is never given as an argument, and this one may be in your shell's history and in the"
        + " list of processes now; type it when you are asked, or give it with --key-file or on standard input\n"

    /// The key unchanged, without its `baton1`, mistyped, and in part.
    private static let written: [String] = [
        key, key.uppercased(), key.filter { $0 != "-" }, String(key.dropFirst(7)), key.dropLast() + "q",
        String(key.dropLast(9)), " \(key)", "“\(key)”", "key=\(key)",
    ]
    private static let grouped: [[String]] = written.prefix(6).map { $0.split(separator: "-").map(String.init) }
    private static let elsewhere: [[String]] = [
        [key], ["help", key], ["account", "create", "--name", key], ["account", "join", "--key-file", key],
        ["account", "join", "--key-file=\(key)"], ["account", "join", "--\(key)"], ["devices", "revoke", key],
        ["offer", key], ["offer", "--type", "a", "--user-info", "{\"a\":\"\(key)\"}"], ["withdraw", key],
        ["accept", key], ["offer", "--url", "https://swift.org", "--title", key.dropLast() + "q"],
    ]

    @Test(
        "a key among the arguments is not said again, whatever command it is given to",
        arguments: written.map { ["account", "join", $0] } + grouped.map { ["account", "join"] + $0 } + elsewhere)
    func keyArgument(_ arguments: [String]) async throws {
        let result = try await BuiltCommand.run(arguments)
        #expect(result.status == ExitStatus.usage.rawValue)
        #expect(result.output.isEmpty && result.errors == Self.refusal)
    }

    @Test("what only begins as a key does is a name")
    func noKeyArgument() async throws {
        let folder = try ScratchFolder("cli")
        defer { folder.remove() }
        for name in ["baton1.txt", "baton1-data-last-year-late-text.txt", "baton1qqqqqqqqqqqqqqqqqqqqqqqq"] {
            try folder.write("text", to: name)
            let offered = try await BuiltCommand.run(["offer", name], in: folder.path)
            #expect(offered.status == ExitStatus.noNode.rawValue, "\(offered.errors)")
        }
        let device = ["devices", "revoke", "baton1", "--yes", "--key-file", "/home/user/key"]
        #expect(try await BuiltCommand.run(device).status == ExitStatus.account.rawValue)
        try AccountKeyArgument.refuse(in: [
            "accept", "--from", "baton1", "--type", "text", "--last", "9000", "--name", "area", "--late", "years",
        ])
        for title in ["baton1 was that the last name here", "baton1 quit and then read the rest that they left"] {
            let offer = ["offer", "--url", "https://swift.org", "--title", title]
            #expect(try await BuiltCommand.run(offer).status == ExitStatus.noNode.rawValue)
        }
    }

    @Test("a key that is mistyped, missing or open to others is refused, and nothing is made")
    func badKeys() async throws {
        let folder = try ScratchFolder("cli")
        defer { folder.remove() }
        let home = folder.path + "/home"
        let made = try await BuiltCommand.run(["account", "create"], home: folder.path + "/other")
        var key = made.output.filter { $0 != "\n" }.map { $0 }
        key[12] = key[12] == "q" ? "p" : "q"
        for input in ["", "\n", "hello\n", String(key) + "\n", String(repeating: "q", count: 10_000)] {
            let result = try await BuiltCommand.run(["account", "join"], home: home, input: input)
            #expect(result.status == ExitStatus.usage.rawValue)
            #expect(result.errors.contains("\nbaton: "), "\(result.errors)")
            #expect(!result.errors.contains(String(key)))
        }
        let open = try folder.write(made.output, to: "open", mode: 0o640).string
        let opened = try await BuiltCommand.run(["account", "join", "--key-file", open], home: home)
        #expect(opened.status == ExitStatus.usage.rawValue)
        #expect(opened.errors.contains("chmod 600"))
        for path in ["/nonexistent/key", folder.path, "/dev/null"] {
            let result = try await BuiltCommand.run(["account", "join", "--key-file", path], home: home)
            #expect(result.status == ExitStatus.usage.rawValue, "\(result.errors)")
        }
        #expect(!FileManager.default.fileExists(atPath: home + "/state/account"))
    }

    @Test("a home that is no absolute path is refused")
    func relativeHome() async throws {
        let result = try await BuiltCommand.run(["status"], home: "here")
        #expect(result.status == ExitStatus.usage.rawValue)
        #expect(result.errors.contains("BATON_HOME has to be an absolute path"))
    }

    @Test("a node needs an account")
    func nodeWithoutAccount() async throws {
        let folder = try ScratchFolder("cli")
        defer { folder.remove() }
        let result = try await BuiltCommand.run(["node"], home: folder.path)
        #expect(result.status == ExitStatus.account.rawValue)
        #expect(result.errors.contains("run `baton`, which makes one or joins yours"))
    }
}
