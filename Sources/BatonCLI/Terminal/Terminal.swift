// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// Properties of the terminal behind a descriptor.
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

    /// Whether the terminal understands control sequences.
    static func isSmart(_ descriptor: FileDescriptor) -> Bool {
        guard isTerminal(descriptor) else { return false }
        guard let name = getenv("TERM") else { return true }
        return strcmp(name, "dumb") != 0
    }
}
