// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonDocuments
import SystemPackage

/// The command of `--serve`: a program and its arguments. A shell reads it only if `--shell` asks for one.
struct ServedCommand: Sendable, Equatable {
    let executable: FilePath
    let arguments: [[UInt8]]

    init(_ line: CommandArgument, throughShell: Bool) throws(CommandLineSplitter.Problem) {
        // A line of spaces is empty for a shell as well.
        let words = throughShell && !line.isBlank ? nil : try line.words()
        executable = words?[0].path ?? "/bin/sh"
        arguments = words?.dropFirst().map(\.bytes) ?? [Array("-c".utf8), line.bytes]
    }
}
