// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import SystemPackage

/// Runs the built command at a terminal, and answers its questions.
enum TerminalDialogue {
    /// Runs the command to its end.
    ///
    /// - Parameter answers: questions and answers in turn. An answer is typed, as a line unless it is ^C, when the
    ///   output ends with its question.
    /// - Returns: the exit status as a shell has it, and the output of the terminal. The status is 99 if the command
    ///   left the terminal without echo.
    static func run(
        _ arguments: [String], home: String, answers: [(question: String, answer: String)]
    ) throws -> (status: Int32, shown: String) {
        try run(arguments, environment: ["BATON_HOME": home], answers: answers)
    }

    /// Runs the command with these variables beside those of the tests.
    ///
    /// - Parameter wrapper: a program with arguments that runs the command, as `env` does.
    static func run(
        _ arguments: [String], environment: [String: String], answers: [(question: String, answer: String)],
        wrapper: [String] = []
    ) throws -> (status: Int32, shown: String) {
        let script = """
            import os, pty, sys, termios
            answers = sys.argv[1:-1 - int(sys.argv[-1])]
            command = sys.argv[-1 - int(sys.argv[-1]):-1]
            shown = b""
            def read(descriptor):
                global shown
                try:
                    data = os.read(descriptor, 1024)
                except OSError:
                    # The command has ended.
                    if termios.tcgetattr(descriptor)[3] & termios.ECHO: raise
                    sys.exit(99)
                shown += data
                if answers and shown.endswith(answers[0].encode()):
                    shown = b""
                    # Nobody types a line behind a ^C.
                    os.write(descriptor, answers[1].encode() + (b"" if answers[1] == "\\x03" else b"\\n"))
                    del answers[:2]
                return data
            status = os.waitstatus_to_exitcode(pty.spawn(command, read))
            sys.exit(status if status >= 0 else 128 - status)
            """
        let command = wrapper + [BuiltCommand.path.string] + arguments
        let variables = environment.map { "\($0)=\($1)" }
        let dialogue = answers.flatMap { [$0.question, $0.answer] }
        let (ending, shown) = try ChildProcess.run(
            ["env"] + variables + ["python3", "-c", script] + dialogue + command + ["\(command.count)"], error: .null)
        return (ending.status, shown)
    }
}
