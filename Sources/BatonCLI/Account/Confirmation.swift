// SPDX-License-Identifier: Apache-2.0

import SystemPackage

/// A question that has to be answered with yes.
enum Confirmation {
    /// - Parameters:
    ///   - isGiven: `--yes` was said.
    ///   - consequence: completes the sentence "…: say --yes to do it unasked", where there is nobody to ask.
    ///   - question: what is asked at the terminal, without the request to type yes.
    /// - Throws: ``CommandError/interrupted`` for any other answer.
    static func require(isGiven: Bool, consequence: String, question: String) async throws {
        if isGiven { return }
        guard Terminal.isTerminal(.standardInput) else {
            throw CommandError.usage("\(consequence): say --yes to do it unasked")
        }
        Output.say("\(question) Type yes:")
        guard try await BlockingReader().readLine() == "yes" else { throw CommandError.interrupted }
    }
}
