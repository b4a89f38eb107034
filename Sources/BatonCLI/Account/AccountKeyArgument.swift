// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import Glibc
import SystemPackage

/// An account key among the arguments, where other programs can read it and where it never belongs.
enum AccountKeyArgument {
    /// Refuses arguments that hold a key, or what looks like one, before anything is made of them: whatever came of
    /// that could say the key again, in an error that gets into a log.
    static func refuse(in arguments: [String]) throws(CommandError) {
        let isWhole = AccountKey.isWhole(in: arguments.joined(separator: " ").utf8)
        guard isWhole || phrases(arguments).contains(where: { AccountKey.isBegun(in: $0) }) else { return }
        throw .usage(
            "an account key is never given as an argument, and this one may be in your shell's history and in the list of"
                + " processes now; type it when you are asked, or give it with --key-file or on standard input")
    }

    /// Arguments that follow one another without an option between them, since a key may have been typed in groups.
    /// What names a file is none of it: a name may begin as a key does.
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
        PathArgument(argument: argument)?.path.withPlatformString { access($0, F_OK) == 0 } ?? false
    }
}
