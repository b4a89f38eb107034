// SPDX-License-Identifier: Apache-2.0

import SystemPackage

/// A question that the user has to answer with yes.
enum Confirmation {
    /// Asks until the answer is yes or no.
    ///
    /// - Parameters:
    ///   - isGiven: whether the user said `--yes`.
    ///   - consequence: the subject of "…: say --yes to do it unasked", if standard input is no terminal.
    ///   - question: what is asked at the terminal.
    /// - Throws: ``CommandError/interrupted`` for no and at the end of the input, after the user was told that nothing
    ///   was changed.
    static func require(isGiven: Bool, consequence: String, question: String) async throws {
        if isGiven { return }
        guard Terminal.isTerminal(.standardInput) else {
            throw CommandError.usage("\(consequence): say --yes to do it unasked")
        }
        Output.say(question)
        let reader = try BlockingReader()
        while true {
            Output.prompt("Type yes, or no to leave everything as it is: ")
            switch await reader.readLine()?.lowercased().filter({ !$0.isWhitespace }) {
            case "yes": return
            case "no", "n", nil:
                Output.say("Nothing was changed.")
                throw CommandError.interrupted
            case _: continue
            }
        }
    }
}
