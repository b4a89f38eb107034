// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import BatonApplications

@Suite("Splitting a command")
struct CommandLineTests {
    @Test(
        "as a shell would, without one",
        arguments: [
            ("cat", ["cat"]), ("  a  b\tc\n", ["a", "b", "c"]), ("a 'b c' d", ["a", "b c", "d"]),
            (#"a "b \"c\" \x" d"#, ["a", #"b "c" \x"#, "d"]), (#"a b\ c"#, ["a", "b c"]), ("a ''", ["a", ""]),
            (#"a"b"'c'd"#, ["abcd"]), ("a $HOME `x` *", ["a", "$HOME", "`x`", "*"]), (#"a '\'"#, ["a", #"\"#]),
            ("a | b", ["a", "|", "b"]), ("é 'ü'", ["é", "ü"]), ("a \"b\\\nc\"", ["a", "bc"]),
        ])
    func splits(_ line: String, _ words: [String]) throws {
        #expect(try CommandLineSplitter.split(line) == words)
    }

    @Test("what cannot be split")
    func refusals() {
        #expect(throws: CommandLineSplitter.Problem.empty) { try CommandLineSplitter.split("") }
        #expect(throws: CommandLineSplitter.Problem.empty) { try CommandLineSplitter.split(" \t") }
        #expect(throws: CommandLineSplitter.Problem.empty) { try CommandLineSplitter.split("''") }
        #expect(throws: CommandLineSplitter.Problem.openQuote("'")) { try CommandLineSplitter.split("a 'b") }
        #expect(throws: CommandLineSplitter.Problem.openQuote("\"")) { try CommandLineSplitter.split("a \"b\\") }
        #expect(throws: CommandLineSplitter.Problem.trailingBackslash) { try CommandLineSplitter.split("a \\") }
    }
}
