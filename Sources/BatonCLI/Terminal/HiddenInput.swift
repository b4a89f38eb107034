// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import Glibc
import SystemPackage

/// Asks for a secret at the terminal, and does not show it.
enum HiddenInput {
    /// Prints the question on standard error and reads one line from standard input, which is a terminal.
    ///
    /// Every way out restores the terminal's echo, including ^C. ^Z does nothing meanwhile: the shell would have no
    /// echo.
    static func ask(_ question: String, limit: Int) async throws -> SecretBytes {
        let reader = try BlockingReader()
        var settings = termios()
        guard tcgetattr(STDIN_FILENO, &settings) == 0 else {
            throw CommandError.failed("the settings of the terminal cannot be read: \(Errno(rawValue: errno))")
        }
        let shown = settings
        settings.c_lflag &= ~tcflag_t(ECHO)
        // The end of the line is shown, so that the next output begins on a new line.
        settings.c_lflag |= tcflag_t(ECHONL)
        let hidden = settings

        let interrupts = await Interrupts.watch([SIGINT, SIGTERM, SIGHUP, SIGQUIT]) { _ in
            restore(shown)
            Output.say("")
            _exit(ExitStatus.interrupted.rawValue)
        }
        let suspending = await Interrupts.watch([SIGTSTP]) { _ in }
        defer {
            restore(shown)
            withExtendedLifetime((interrupts, suspending)) {}
        }
        restore(hidden)
        Output.prompt(question)
        return try await reader.readSecret(from: .standardInput, limit: limit)
    }

    private static func restore(_ settings: termios) {
        var settings = settings
        // Discard the input from before the question: it is not the beginning of the secret.
        _ = tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
    }
}

/// Blocking reads, on a thread of their own.
actor BlockingReader {
    /// The most bytes of a line of text that are kept: 4096, as of a line that is typed at a terminal.
    private static let lineBound = 4096

    private let executor: BlockingExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init() throws {
        executor = try BlockingExecutor(name: "read")
    }

    /// Reads one line as a secret, without its end.
    func readSecret(from descriptor: FileDescriptor, limit: Int) throws -> SecretBytes {
        try SecretBytes(readingFrom: descriptor, limit: limit)
    }

    /// Reads one line of standard input as text, and nothing behind it; `nil` at the end of the input.
    ///
    /// A read by stdio would keep the process from its end: `exit` of glibc 2.41 waits for the lock of `stdin`.
    func readLine() -> String? {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while (try? withUnsafeMutableBytes(of: &byte) { try FileDescriptor.standardInput.read(into: $0) }) == 1 {
            if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
            if line.count < Self.lineBound { line.append(byte) }
        }
        return line.isEmpty ? nil : String(decoding: line, as: UTF8.self)
    }
}
