// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Puts the terminal into the mode of a full-screen program, and back on every exit but `SIGKILL`.
///
/// A crash comes as a signal. Its handler takes no context, so its data is global.
enum TerminalMode {
    /// Switches to the alternate screen and turns focus reports on.
    private static let enterSequence: StaticString = "\u{1B}[?1049h\u{1B}[?1004h"
    private static let leaveSequence: StaticString = "\u{1B}[?1004l\u{1B}[0m\u{1B}[?25h\u{1B}[?1049l"
    private static let crashes = [SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGABRT]

    nonisolated(unsafe) private static var ordinary = termios()  // reason: written before the handler is installed

    /// - Returns: whether there is a terminal.
    static func enter() -> Bool {
        guard isatty(STDOUT_FILENO) == 1, tcgetattr(STDIN_FILENO, &ordinary) == 0 else { return false }
        var raw = ordinary
        cfmakeraw(&raw)
        tcsetattr(STDIN_FILENO, TCSANOW, &raw)
        write(enterSequence)
        var action = sigaction()
        action.__sigaction_handler.sa_handler = crashed
        action.sa_flags = Int32(bitPattern: SA_RESETHAND)
        for signal in crashes { sigaction(signal, &action, nil) }
        return true
    }

    /// Restores the terminal. Idempotent.
    static func leave() {
        write(leaveSequence)
        tcsetattr(STDIN_FILENO, TCSANOW, &ordinary)
    }

    private static let crashed: @convention(c) (Int32) -> Void = { signal in
        leave()
        // The handler is gone (SA_RESETHAND), so this ends the process as the crash would have, once it returns.
        raise(signal)
    }

    private static func write(_ text: StaticString) {
        _ = Glibc.write(STDOUT_FILENO, text.utf8Start, text.utf8CodeUnitCount)
    }
}
