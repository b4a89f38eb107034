// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Subprocess
import SystemPackage

/// A process in a session of its own, in the home folder, whose input and output are /dev/null. The end of its standard
/// error is kept. It outlives this process; as long as this process lives, it is reaped.
enum DetachedProcess {
    /// Starts a program.
    ///
    /// - Parameter onEnd: told once, when the process has ended, with the last lines of its standard error.
    /// - Returns: the process id, once the program has been executed.
    static func start(
        _ command: ApplicationLauncher.Command, environment: [String: String], home: FilePath,
        _ search: ExecutableSearch, onEnd: @escaping @Sendable (ApplicationLauncher.Ending, [String]) -> Void
    ) async throws(LaunchError) -> Int32 {
        let errors: ErrorOutput
        do {
            errors = try ErrorOutput(search)
        } catch {
            throw LaunchError(
                .notStarted, "\(command.program) could not be started (\(error))", underlyingError: error)
        }
        let result: Result<Int32, LaunchError> = await withCheckedContinuation { continuation in
            let start = Start(continuation)
            // Cancelling this task would end the process, so it is detached. It ends with the process.
            Task.detached {
                var options = PlatformOptions()
                options.createSession = true
                do {
                    let result = try await Subprocess.run(
                        .path(command.program), arguments: Arguments(command.arguments),
                        environment: .custom(environment.subprocess), workingDirectory: home, platformOptions: options,
                        input: .none, output: .discarded,
                        error: .fileDescriptor(errors.descriptor, closeAfterSpawningProcess: false)
                    ) { execution in
                        errors.closeWriter()
                        start.resume(.success(execution.processIdentifier.value))
                    }
                    onEnd(ApplicationLauncher.Ending(result.terminationStatus), await errors.lastLines())
                } catch {
                    start.resume(.failure(LaunchError(starting: command.program, error)))
                }
            }
        }
        return try result.get()
    }

    /// The caller, who is told once.
    private final class Start: Sendable {
        private let waiting: Lock<CheckedContinuation<Result<Int32, LaunchError>, Never>?>

        init(_ continuation: CheckedContinuation<Result<Int32, LaunchError>, Never>) {
            waiting = Lock(continuation)
        }

        func resume(_ result: Result<Int32, LaunchError>) {
            let continuation = waiting.withLock { waiting in
                defer { waiting = nil }
                return waiting
            }
            continuation?.resume(returning: result)
        }
    }
}

extension ApplicationLauncher.Ending {
    init(_ status: TerminationStatus) {
        self =
            switch status {
            case .exited(let code): .exited(code)
            case .signaled(let signal): .signalled(signal)
            }
    }
}

extension LaunchError {
    init(starting program: FilePath, _ error: any Error) {
        let cause = (error as? SubprocessError)?.underlyingError
        let reason = cause.map { "\($0)" } ?? "\(error)"
        self.init(.notStarted, "\(program) could not be started (\(reason))", underlyingError: cause)
    }
}

extension [String: String] {
    /// As Subprocess wants it.
    var subprocess: [Environment.Key: String] {
        [Environment.Key: String](uniqueKeysWithValues: map { (Environment.Key(rawValue: $0)!, $1) })
    }
}
