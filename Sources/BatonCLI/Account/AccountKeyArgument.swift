// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import Glibc
import SystemPackage

/// The check that no argument is an account key: other programs can read arguments.
enum AccountKeyArgument {
    /// Refuses arguments that contain a key, or that look like one. Call it before they are parsed: a parser's error
    /// could repeat the key, and end up in a log.
    static func refuse(in arguments: [String]) throws(CommandError) {
        let isWhole = AccountKey.isWhole(in: arguments.joined(separator: " ").utf8)
        guard isWhole || phrases(arguments).contains(where: { AccountKey.isBegun(in: $0) }) else { return }
        throw .usage(
            "an account key is never given as an argument, and this one may be in your shell's history and in the list"
                + " of processes now; type it when you are asked, or give it with --key-file or on standard input")
    }

    /// Joins arguments that have no option between them: a key may have been typed in groups. Names of files are left
    /// out, since they may begin like a key.
    private static func phrases(_ arguments: [String]) -> [String] {
        arguments.filter { !isFile($0) }.reduce(into: []) { phrases, argument in
            if argument.hasPrefix("-") || phrases.isEmpty {
                phrases.append(argument)
            } else {
                phrases[phrases.count - 1] += " " + argument
            }
        }
    }

    private static func isFile(_ argument: String) -> Bool {
        CommandArgument(argument: argument)?.path.withPlatformString { access($0, F_OK) == 0 } ?? false
    }
}
