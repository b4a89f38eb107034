// SPDX-License-Identifier: Apache-2.0

import Foundation
import Subprocess
import Testing

/// How a script ends what it has started: `Scripts/common/build.bash`.
@Suite("What the scripts leave", .timeLimit(.minutes(2)))
struct AttendTests {
    private static let source = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Scripts/common/build.bash").path

    /// As `swift test`, which puts the process with the tests into a group of its own; and one that SIGTERM does not
    /// end. Both are said in a line each.
    private static let family = """
        'set -m
        bash -c "trap : TERM; echo \\$\\$; while :; do sleep 1; done" &
        bash -c "echo \\$\\$; exec sleep 1000" &
        wait'
        """

    /// Whether a process runs. An ended process stays until its parent has read its status.
    private static func runs(_ process: Int32) -> Bool {
        let status = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
        return status.map { $0[($0.lastIndex(of: ")") ?? $0.startIndex)...].dropFirst(2).first != "Z" } ?? false
    }

    /// Runs a script that knows `build.bash`, and `body` with its process once the two of its family are there.
    ///
    /// - Returns: its status, and who of the two was left when it had ended; by now nobody is.
    private static func run(
        _ script: String, body: @Sendable (ProcessIdentifier) -> Void = { _ in }
    ) async throws -> (status: TerminationStatus, left: [Int32]) {
        let result = try await Subprocess.run(
            .name("bash"), arguments: ["-c", "set -euo pipefail; source \"$1\"; \(script)", "bash", source],
            input: .none, output: .sequence, error: .discarded
        ) { script in
            var said = ""
            var family: [Int32] = []
            for try await buffer in script.standardOutput {
                said += buffer.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
                family = said.split(separator: "\n", omittingEmptySubsequences: false).dropLast().compactMap {
                    Int32($0)
                }
                if family.count == 2 { break }
            }
            #expect(family.count == 2 && family.allSatisfy(runs), "\(said)")
            body(script.processIdentifier)
            return family
        }
        // A killed process may need a moment to end. The others run for longer than this.
        let deadline = ContinuousClock.now + .seconds(10)
        while result.closureResult.contains(where: runs), ContinuousClock.now < deadline {
            try await Task.sleep(for: .milliseconds(20))
        }
        let left = result.closureResult.filter(runs)
        for process in left { kill(process, SIGKILL) }
        return (result.terminationStatus, left)
    }

    @Test("A script that is interrupted ends what it waits for, also in other process groups")
    func interrupted() async throws {
        let (status, left) = try await Self.run(
            """
            trap 'trap "" TERM; abandon; exit 143' TERM
            attend bash -c \(Self.family)
            """
        ) { script in
            #expect(kill(script.value, SIGTERM) == 0)
        }
        #expect(status == .exited(143) && left.isEmpty)
    }

    @Test("A command that takes too long ends with all that it has started, and the script goes on")
    func late() async throws {
        let (status, left) = try await Self.run(
            """
            code=0
            attend_within 15 bash -c \(Self.family) || code=$?
            [[ $code == 124 && -z $attended$timer ]]
            """)
        #expect(status == .exited(0) && left.isEmpty)
    }

    @Test("A command that ends in time keeps its status, and leaves no timer", arguments: [0, 1, 124])
    func early(status: Int32) async throws {
        let result = try await Subprocess.run(
            .name("bash"),
            arguments: [
                "-c", "source \"$1\"; attend_within 1000 bash -c \"exit $2\"; echo $? \"$(jobs)\"", "bash", Self.source,
                "\(status)",
            ], input: .none, output: .string(limit: 1024), error: .discarded)
        #expect(result.standardOutput == "\(status) \n")
    }
}
