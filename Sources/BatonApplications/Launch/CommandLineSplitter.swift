// SPDX-License-Identifier: Apache-2.0

/// Splits a command line into arguments by a shell's rules for quotes, without a shell: nothing is expanded.
///
/// Spaces, tabs and line ends separate. Every character between single quotes stands for itself. Between double quotes
/// a backslash quotes `"`, `\`, `$` and a backquote; outside of quotes it quotes any character.
package enum CommandLineSplitter {
    /// Why a line cannot be split.
    package enum Problem: Error, Sendable, Equatable {
        case empty
        case openQuote(Character)
        case trailingBackslash

        /// One sentence about the mistake.
        ///
        /// - Parameter subject: names the command, such as `the command of --serve`.
        package func sentence(about subject: String) -> String {
            switch self {
            case .empty: "\(subject) is empty; name a program, such as \"tail -f log.txt\""
            case .openQuote(let quote): "\(subject) has a \(quote) that is not closed"
            case .trailingBackslash: "\(subject) ends with a backslash; there is nothing for it to quote"
            }
        }
    }

    /// The arguments of a line, at least one, the first not empty.
    package static func split(_ line: String) throws(Problem) -> [String] {
        var arguments: [String] = []
        var current: String?
        var rest = line.unicodeScalars.makeIterator()
        while let scalar = rest.next() {
            switch scalar {
            case " ", "\t", "\n", "\r":
                if let argument = current { arguments.append(argument) }
                current = nil
            case "'":
                var text = current ?? ""
                while true {
                    guard let inner = rest.next() else { throw .openQuote("'") }
                    if inner == "'" { break }
                    text.unicodeScalars.append(inner)
                }
                current = text
            case "\"":
                current = (current ?? "") + (try doubleQuoted(&rest))
            case "\\":
                guard let next = rest.next() else { throw .trailingBackslash }
                // As in a shell, a quoted line end is no character at all.
                if next != "\n" { current = (current ?? "") + String(next) }
            case _:
                current = (current ?? "") + String(scalar)
            }
        }
        if let argument = current { arguments.append(argument) }
        guard let command = arguments.first, !command.isEmpty else { throw .empty }
        return arguments
    }

    private static func doubleQuoted(
        _ rest: inout String.UnicodeScalarView.Iterator
    ) throws(Problem) -> String {
        var text = ""
        while true {
            guard let scalar = rest.next() else { throw .openQuote("\"") }
            switch scalar {
            case "\"":
                return text
            case "\\":
                guard let next = rest.next() else { throw .openQuote("\"") }
                switch next {
                case "\"", "\\", "$", "`": break
                case "\n": continue
                case _: text += "\\"
                }
                text.unicodeScalars.append(next)
            case _:
                text.unicodeScalars.append(scalar)
            }
        }
    }
}
