// SPDX-License-Identifier: Apache-2.0

/// A terminal of a command's own, whose person answers questions.
enum LabTerminalAnswers {
    /// Runs a command at it.
    ///
    /// - Parameter answers: a line for each question `(1-2)`, in turn.
    static func wrapper(_ answers: String...) -> [String] {
        let script = """
            import os, pty, sys
            answers = sys.argv[1].split()
            def read(descriptor):
                data = os.read(descriptor, 1024)
                if data.endswith(b"(1-2) ") and answers:
                    os.write(descriptor, answers.pop(0).encode() + b"\\n")
                return data
            sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[2:], read)))
            """
        return ["python3", "-c", script, answers.joined(separator: " ")]
    }
}
