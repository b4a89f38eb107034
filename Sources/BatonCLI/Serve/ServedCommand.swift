// SPDX-License-Identifier: Apache-2.0

import BatonApplications

/// The command behind `--serve`: arguments, without a shell unless one was asked for.
struct ServedCommand: Sendable, Equatable {
    let executable: String
    let arguments: [String]

    init(_ line: String, throughShell: Bool) throws(CommandLineSplitter.Problem) {
        if throughShell {
            guard line.contains(where: { !$0.isWhitespace }) else { throw .empty }
            executable = "/bin/sh"
            arguments = ["-c", line]
        } else {
            let words = try CommandLineSplitter.split(line)
            executable = words[0]
            arguments = Array(words.dropFirst())
        }
    }
}
