// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// What the command prints: results on standard output, everything said to people on standard error.
///
/// Each line is one `write`, so that lines of tasks never mix and a reader behind a pipe sees them at once.
enum Output {
    /// Prints a line of the result.
    ///
    /// - Throws: ``CommandError`` when nobody can read it, such as a full disk behind a redirection.
    static func line(_ text: String) throws(CommandError) {
        try line(bytes: Array(text.utf8))
    }

    /// Prints a line of bytes as they are, such as a path, which need not be text.
    static func line(bytes: [UInt8]) throws(CommandError) {
        try Self.bytes(bytes + [UInt8(ascii: "\n")])
    }

    /// Prints bytes of the result as they are.
    static func bytes(_ bytes: [UInt8]) throws(CommandError) {
        do {
            try FileDescriptor.standardOutput.writeAll(bytes)
        } catch {
            throw .failed("standard output cannot be written to: \(error)")
        }
    }

    /// Sees that what is printed once, and kept nowhere, is not lost: where nobody reads any more the write fails from
    /// here on, and does not end the process (signal(7)).
    ///
    /// - Throws: ``CommandError`` where standard output is closed or leads to `/dev/null`.
    static func requireReader(of what: String) throws(CommandError) {
        signal(SIGPIPE, SIG_IGN)
        // A descriptor that was closed leads there by now: see ``BatonCommand/main()``. The device may have another
        // name.
        let null = try? FilePath("/dev/null").stat()
        guard let output = try? FileDescriptor.standardOutput.stat(),
            output.type != null?.type || output.specialDeviceID != null?.specialDeviceID
        else {
            throw .usage("standard output leads nowhere, and \(what) is printed there once: nothing was done")
        }
    }

    /// Says something to the person at the terminal. What nobody can read is dropped.
    static func say(_ text: String) {
        _ = try? FileDescriptor.standardError.writeAll((text + "\n").utf8)
    }

    /// Says what went wrong.
    static func complain(_ text: String) {
        say("baton: " + text)
    }
}
