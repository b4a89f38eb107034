// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Puts the terminal into the mode of a full-screen program, and back on every exit but `SIGKILL`.
///
/// A crash and ^Z come as signals. Their handlers take no context, so their data is global.
enum TerminalMode {
    /// Switches to the alternate screen and turns focus reports on.
    private static let enterSequence: StaticString = "\u{1B}[?1049h\u{1B}[?1004h"
    private static let leaveSequence: StaticString = "\u{1B}[?1004l\u{1B}[0m\u{1B}[?25h\u{1B}[?1049l"
    private static let crashes = [SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGABRT]

    nonisolated(unsafe) private static var ordinary = termios()  // reason: written before the handlers are installed
    nonisolated(unsafe) private static var raw = termios()  // reason: the same

    /// - Returns: whether there is a terminal.
    static func enter() -> Bool {
        guard isatty(STDOUT_FILENO) == 1, tcgetattr(STDIN_FILENO, &ordinary) == 0 else { return false }
        raw = ordinary
        cfmakeraw(&raw)
        resume()
        for signal in crashes { handle(signal, by: crashed, Int32(bitPattern: SA_RESETHAND)) }
        handle(SIGTSTP, by: stopped, SA_NODEFER)
        return true
    }

    /// Restores the terminal. Idempotent.
    static func leave() {
        write(leaveSequence)
        tcsetattr(STDIN_FILENO, TCSANOW, &ordinary)
    }

    /// Takes the terminal for this program again.
    static func resume() {
        tcsetattr(STDIN_FILENO, TCSANOW, &raw)
        write(enterSequence)
    }

    /// Stops the process, as ^Z does. The kernel does nothing if no process could continue it. Returns when the program
    /// goes on.
    static func suspend() {
        // Dispatch's threads block signals.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGTSTP)
        var before = sigset_t()
        pthread_sigmask(SIG_UNBLOCK, &signals, &before)
        raise(SIGTSTP)
        pthread_sigmask(SIG_SETMASK, &before, nil)
    }

    private static let crashed: @convention(c) (Int32) -> Void = { signal in
        leave()
        // The handler is gone (SA_RESETHAND), so this ends the process as the crash would have, once it returns.
        raise(signal)
    }

    private static let stopped: @convention(c) (Int32) -> Void = { signal in
        leave()
        // The default is to stop: here, until SIGCONT.
        handle(signal, by: SIG_DFL, 0)
        raise(signal)
        handle(signal, by: stopped, SA_NODEFER)
        resume()
    }

    private static func handle(_ signal: Int32, by handler: __sighandler_t?, _ flags: Int32) {
        var action = sigaction()
        action.__sigaction_handler.sa_handler = handler
        action.sa_flags = flags
        sigaction(signal, &action, nil)
    }

    private static func write(_ text: StaticString) {
        _ = Glibc.write(STDOUT_FILENO, text.utf8Start, text.utf8CodeUnitCount)
    }
}
