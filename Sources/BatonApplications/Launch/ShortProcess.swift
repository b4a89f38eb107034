// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Subprocess
import SystemPackage

/// A program that answers a question and ends soon.
enum ShortProcess {
    /// The most bytes of each output that are read.
    static let outputBound = 16 << 10
    /// How long one that takes too long has between SIGTERM and SIGKILL.
    private static let grace = Duration.milliseconds(200)

    struct Answer: Sendable, Hashable {
        let ending: ApplicationLauncher.Ending
        let output: String
        let errors: String

        var hasSucceeded: Bool { ending == .exited(0) }
    }

    /// Runs a program.
    ///
    /// - Parameter time: the time after which it is killed with all that it started; many of these programs are
    ///   scripts.
    /// - Returns: `nil` if it could not be run, printed too much or took too long.
    static func run(
        _ program: FilePath, _ arguments: [String], environment: [String: String], within time: Duration
    ) async -> Answer? {
        var options = PlatformOptions()
        options.processGroupID = 0
        options.teardownSequence = [.gracefulShutDown(toProcessGroup: true, allowedDurationToNextStep: grace)]
        return await withTaskGroup(of: Answer?.self) { [options] group in
            group.addTask {
                let result = try? await Subprocess.run(
                    .path(program), arguments: Arguments(arguments), environment: .custom(environment.subprocess),
                    platformOptions: options, input: .none, output: .string(limit: outputBound),
                    error: .string(limit: outputBound))
                return result.map {
                    Answer(
                        ending: ApplicationLauncher.Ending($0.terminationStatus), output: $0.standardOutput,
                        errors: $0.standardError)
                }
            }
            group.addTask {
                try? await Alarm.sleep(for: time)
                return nil
            }
            let answer = await group.next()
            group.cancelAll()
            return answer ?? nil
        }
    }
}
