// SPDX-License-Identifier: Apache-2.0

import SystemPackage

/// Asks the user at the terminal to choose one of several lines.
struct NumberedChoice {
    /// A line above the others; `nil` for none.
    var heading: String?
    let lines: [String]

    /// Whether there is a user to ask.
    static var isPossible: Bool { Terminal.isTerminal(.standardInput) && Terminal.isTerminal(.standardError) }

    /// Asks until the answer is one of the numbers.
    ///
    /// - Returns: the index of the line.
    /// - Throws: `interrupted` at the end of standard input.
    func ask(_ question: String) async throws -> Int {
        if let heading { Output.say("    " + heading) }
        for (index, line) in lines.enumerated() {
            let number = String(index + 1)
            Output.say(String(repeating: " ", count: max(0, 2 - number.count)) + number + "  " + line)
        }
        let reader = try BlockingReader()
        while true {
            Output.prompt("\(question) (1-\(lines.count)) ")
            guard let line = await reader.readLine() else { throw CommandError.interrupted }
            if let number = Int(line.filter { $0 != " " }), lines.indices.contains(number - 1) { return number - 1 }
        }
    }
}
