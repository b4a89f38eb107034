// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// What is known of the terminal behind a descriptor.
enum Terminal {
    /// What a terminal is assumed to have where it does not tell: the width of a VT100.
    static let defaultWidth = 80

    static func isTerminal(_ descriptor: FileDescriptor) -> Bool {
        isatty(descriptor.rawValue) == 1
    }

    /// Columns, asked anew each time, so that a changed window shows in the next line drawn; no bound where the output
    /// goes to a file or another program.
    static func width(of descriptor: FileDescriptor) -> Int {
        guard isTerminal(descriptor) else { return .max }
        var size = winsize()
        guard ioctl(descriptor.rawValue, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return defaultWidth }
        return Int(size.ws_col)
    }

    /// Whether the terminal takes control sequences.
    static func isSmart(_ descriptor: FileDescriptor) -> Bool {
        guard isTerminal(descriptor) else { return false }
        guard let name = getenv("TERM") else { return true }
        return strcmp(name, "dumb") != 0
    }
}
