import Subprocess
import SystemPackage

/// A program that is asked something and answers soon.
enum ShortProcess {
    /// The most bytes of each output that are read.
    static let outputBound = 16 << 10

    struct Answer: Sendable {
        let ending: ApplicationLauncher.Ending
        let output: String
        let errors: String

        var hasSucceeded: Bool { ending == .exited(0) }
    }

    /// Runs a program.
    ///
    /// - Parameter time: after which it is killed.
    /// - Returns: `nil` where it could not be run, said too much or took too long.
    static func run(
        _ program: FilePath, _ arguments: [String], environment: [String: String], within time: Duration
    ) async -> Answer? {
        await withTaskGroup(of: Answer?.self) { group in
            group.addTask {
                // An ended task kills it.
                let result = try? await Subprocess.run(
                    .path(program), arguments: Arguments(arguments), environment: .custom(environment.subprocess),
                    input: .none, output: .string(limit: outputBound), error: .string(limit: outputBound))
                return result.map {
                    Answer(
                        ending: ApplicationLauncher.Ending($0.terminationStatus), output: $0.standardOutput,
                        errors: $0.standardError)
                }
            }
            group.addTask {
                try? await Task.sleep(for: time)
                return nil
            }
            let answer = await group.next()
            group.cancelAll()
            return answer ?? nil
        }
    }
}
