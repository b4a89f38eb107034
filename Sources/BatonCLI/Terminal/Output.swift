// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import Glibc
import SystemPackage

/// The output of the command: results on standard output, and all messages to people on standard error.
///
/// Each line is one `write`, so that lines of several tasks never mix, and a pipe's reader gets them at once.
enum Output {
    /// Prints a line of the result.
    ///
    /// - Throws: ``CommandError`` if it cannot be written, for example because a disk is full.
    static func line(_ text: String) throws(CommandError) {
        try line(bytes: Array(text.utf8))
    }

    /// Prints a line of bytes unchanged, such as a path.
    static func line(bytes: [UInt8]) throws(CommandError) {
        try Self.bytes(bytes + [UInt8(ascii: "\n")])
    }

    /// Prints bytes of the result unchanged.
    static func bytes(_ bytes: [UInt8]) throws(CommandError) {
        do {
            try FileDescriptor.standardOutput.writeAll(bytes)
        } catch {
            throw .failed("standard output cannot be written to: \(error)")
        }
    }

    /// Prints a secret from protected memory, unchanged.
    static func secret(_ secret: SecretBytes) throws(AccountError) {
        do {
            _ = try secret.withUnsafeBytes { try FileDescriptor.standardOutput.writeAll($0) }
        } catch {
            throw .system(doing: "print the key to", path: "standard output", error: error as? Errno ?? .ioError)
        }
    }

    /// Protects a result that is printed once and kept nowhere. From here on a write without a reader fails, and no
    /// signal ends the process.
    ///
    /// - Throws: ``CommandError`` if standard output is closed or is `/dev/null`.
    static func requireReader(of what: String) throws(CommandError) {
        signal(SIGPIPE, SIG_IGN)
        // A closed descriptor is /dev/null by now: see ``BatonCommand/main()``. The device may have another name.
        let null = try? FilePath("/dev/null").stat()
        guard let output = try? FileDescriptor.standardOutput.stat(),
            output.type != null?.type || output.specialDeviceID != null?.specialDeviceID
        else {
            throw .usage("standard output is /dev/null, and \(what) is printed there once: nothing was done")
        }
    }

    /// Prints a listing: each entry as a line of JSON, or the lines for people.
    ///
    /// - Parameters:
    ///   - nothing: what people are told if the list is empty.
    ///   - lines: the entries for people, in a width.
    static func list<Entry>(
        _ entries: [Entry], asJSON isJSON: Bool, json: (Entry) -> String, nothing: String,
        lines: ([Entry], Int) -> [String]
    ) throws(CommandError) {
        if !isJSON, entries.isEmpty { return say(nothing) }
        let lines = isJSON ? entries.map(json) : lines(entries, Terminal.width(of: .standardOutput))
        for text in lines { try line(text) }
    }

    /// Prints a message to the user, broken into lines for a terminal. A failure of the write is ignored.
    static func say(_ text: String) {
        _ = try? FileDescriptor.standardError.writeAll((wrapped(text) + "\n").utf8)
    }

    /// Prints a question. The user types the answer on the same line.
    static func prompt(_ text: String) {
        _ = try? FileDescriptor.standardError.writeAll(wrapped(text).utf8)
    }

    private static func wrapped(_ text: String) -> String {
        TextWrap.lines(text, width: Terminal.width(of: .standardError)).joined(separator: "\n")
    }

    static func complain(_ text: String) {
        say("baton: " + text)
    }
}

enum Terminal {
    /// The width of a terminal that does not tell it: 80 columns, as on a VT100.
    static let defaultWidth = 80

    static func isTerminal(_ descriptor: FileDescriptor) -> Bool {
        isatty(descriptor.rawValue) == 1
    }

    /// The width in columns; no limit for a file or a pipe. It is read each time, since the user may resize the window.
    static func width(of descriptor: FileDescriptor) -> Int {
        guard isTerminal(descriptor) else { return .max }
        var size = winsize()
        guard ioctl(descriptor.rawValue, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return defaultWidth }
        return Int(size.ws_col)
    }

    static func isSmart(_ descriptor: FileDescriptor) -> Bool {
        guard isTerminal(descriptor) else { return false }
        guard let name = getenv("TERM") else { return true }
        return strcmp(name, "dumb") != 0
    }
}
