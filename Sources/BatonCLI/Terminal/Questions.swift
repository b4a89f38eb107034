// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import Glibc
import SystemPackage

struct NumberedChoice {
    /// A line above the others; `nil` for none.
    var heading: String?
    let lines: [String]

    static var isPossible: Bool { Terminal.isTerminal(.standardInput) && Terminal.isTerminal(.standardError) }

    /// Asks until the answer is one of the numbers.
    ///
    /// - Returns: the index of the line.
    /// - Throws: `interrupted` at the end of standard input.
    func ask(_ question: String) async throws -> Int {
        if let heading { Output.say("    " + heading) }
        for (index, line) in lines.enumerated() {
            let number = String(index + 1)
            Output.say(String(repeating: " ", count: max(0, 2 - number.count)) + number + "  " + line)
        }
        let reader = try ByteChannel(.standardInput)
        while true {
            Output.prompt("\(question) (1-\(lines.count)) ")
            guard let line = await reader.readLine() else { throw CommandError.interrupted }
            if let number = Int(line.filter { $0 != " " }), lines.indices.contains(number - 1) { return number - 1 }
        }
    }
}

enum Confirmation {
    /// Asks until the answer is yes or no.
    ///
    /// - Parameters:
    ///   - isGiven: whether the user said `--yes`.
    ///   - consequence: the subject of "…: say --yes to do it unasked", if standard input is no terminal.
    ///   - question: what is asked at the terminal.
    /// - Throws: ``CommandError/interrupted`` for no and at the end of the input, after the user was told that nothing
    ///   was changed.
    static func require(isGiven: Bool, consequence: String, question: String) async throws {
        if isGiven { return }
        guard Terminal.isTerminal(.standardInput) else {
            throw CommandError.usage("\(consequence): say --yes to do it unasked")
        }
        Output.say(question)
        let reader = try ByteChannel(.standardInput)
        while true {
            Output.prompt("Type yes, or no to leave everything as it is: ")
            switch await reader.readLine()?.lowercased().filter({ !$0.isWhitespace }) {
            case "yes": return
            case "no", "n", nil:
                Output.say("Nothing was changed.")
                throw CommandError.interrupted
            case _: continue
            }
        }
    }
}

/// Asks for a secret at the terminal, and does not show it.
enum HiddenInput {
    /// Prints the question on standard error and reads one line from standard input, which is a terminal.
    ///
    /// Every way out restores the terminal's echo, including ^C. ^Z does nothing meanwhile: the shell would have no
    /// echo.
    static func ask(_ question: String, limit: Int) async throws -> SecretBytes {
        let input = try ByteChannel(.standardInput)
        var settings = termios()
        guard tcgetattr(STDIN_FILENO, &settings) == 0 else {
            throw CommandError.failed("the settings of the terminal cannot be read: \(Errno(rawValue: errno))")
        }
        let shown = settings
        settings.c_lflag &= ~tcflag_t(ECHO)
        // The end of the line is shown, so that the next output begins on a new line.
        settings.c_lflag |= tcflag_t(ECHONL)
        let hidden = settings

        await Interrupts.watch([SIGINT, SIGTERM, SIGHUP, SIGQUIT]) {
            restore(shown)
            Output.say("")
            _exit(ExitStatus.interrupted.rawValue)
        }
        let suspending = signal(SIGTSTP, SIG_IGN)
        defer {
            restore(shown)
            Interrupts.stop()
            signal(SIGTSTP, suspending)
        }
        restore(hidden)
        Output.prompt(question)
        return try await input.readSecret(limit: limit)
    }

    private static func restore(_ settings: termios) {
        var settings = settings
        // Discard the input from before the question: it is not the beginning of the secret.
        _ = tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
    }
}
