// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import Glibc
import SystemPackage

/// Asks for a secret at the terminal without showing what is typed.
enum HiddenInput {
    /// Prints the question on standard error and reads one line from standard input, which is a terminal.
    ///
    /// The terminal's echo comes back on every way out, ^C among them. ^Z does nothing meanwhile: a shell would be
    /// left without echo.
    static func ask(_ question: String, limit: Int) async throws -> SecretBytes {
        let reader = try BlockingReader()
        var settings = termios()
        guard tcgetattr(STDIN_FILENO, &settings) == 0 else {
            throw CommandError.failed("the terminal does not tell its settings: \(Errno(rawValue: errno))")
        }
        let shown = settings
        settings.c_lflag &= ~tcflag_t(ECHO)
        // The line's end is still shown, so that the next output begins on a line of its own.
        settings.c_lflag |= tcflag_t(ECHONL)
        let hidden = settings

        let interrupts = await Interrupts.watch([SIGINT, SIGTERM, SIGHUP, SIGQUIT]) { _ in
            restore(shown)
            Output.say("")
            _exit(ExitStatus.interrupted.rawValue)
        }
        let suspending = await SignalSource.watch(SIGTSTP, on: EventLoop(name: "suspend")) {}
        defer {
            restore(shown)
            suspending.cancel()
            withExtendedLifetime(interrupts) {}
        }
        restore(hidden)
        _ = try? FileDescriptor.standardError.writeAll(question.utf8)
        return try await reader.readSecret(from: .standardInput, limit: limit)
    }

    private static func restore(_ settings: termios) {
        var settings = settings
        // What was typed before the question is dropped, so that it is not taken for the secret's beginning.
        _ = tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
    }
}

/// Reads that block, on a thread of their own.
actor BlockingReader {
    private let executor: BlockingExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init() throws {
        executor = try BlockingExecutor(name: "read")
    }

    /// One line, without its end.
    func readSecret(from descriptor: FileDescriptor, limit: Int) throws -> SecretBytes {
        try SecretBytes(readingFrom: descriptor, limit: limit)
    }

    /// One line as text; `nil` at the end of the input.
    func readLine() -> String? {
        Swift.readLine(strippingNewline: true)
    }
}
