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
    /// - Returns: `nil` if it could not be run, printed too much or took too long, or the task was cancelled.
    static func run(
        _ program: FilePath, _ arguments: [String], environment: [String: String], within time: Duration
    ) async -> Answer? {
        var options = PlatformOptions()
        options.processGroupID = 0
        options.teardownSequence = [.gracefulShutDown(toProcessGroup: true, allowedDurationToNextStep: grace)]
        return await value(within: time) { [options] in
            let result = try? await Subprocess.run(
                .path(program), arguments: Arguments(arguments), environment: .custom(environment.subprocess),
                platformOptions: options, input: .none, output: .string(limit: outputBound),
                error: .string(limit: outputBound))
            // One that was killed because nobody waits any more has not answered.
            guard let result, !Task.isCancelled else { return nil }
            return Answer(
                ending: ApplicationLauncher.Ending(result.terminationStatus), output: result.standardOutput,
                errors: result.standardError)
        }
    }
}

/// The value of an operation, which is cancelled if it takes too long; `nil` then.
package func value<Value: Sendable>(
    within time: Duration, of operation: @escaping @Sendable () async -> Value?
) async -> Value? {
    await withTaskGroup(of: Value?.self) { group in
        group.addTask { await operation() }
        group.addTask {
            try? await Alarm.sleep(for: time)
            return nil
        }
        defer { group.cancelAll() }
        return await group.next() ?? nil
    }
}

/// A process in a session of its own, in the home folder, whose input and output are /dev/null. It outlives this
/// process; as long as this process lives, it is reaped.
enum DetachedProcess {
    /// Starts a program.
    ///
    /// - Parameter onEnd: told once, when the process has ended.
    /// - Returns: the process id, once the program has been executed.
    static func start(
        _ command: ApplicationLauncher.Command, environment: [String: String], home: FilePath,
        onEnd: @escaping @Sendable (ApplicationLauncher.Ending) -> Void
    ) async throws(LaunchError) -> Int32 {
        let result: Result<Int32, LaunchError> = await withCheckedContinuation { continuation in
            let waiting = Lock<CheckedContinuation<Result<Int32, LaunchError>, Never>?>(continuation)
            @Sendable func resume(_ result: Result<Int32, LaunchError>) {
                waiting.withLock { $0.take() }?.resume(returning: result)
            }
            // Cancelling this task would end the process, so it is detached. It ends with the process.
            Task.detached {
                var options = PlatformOptions()
                options.createSession = true
                do {
                    let result = try await Subprocess.run(
                        .path(command.program), arguments: Arguments(command.arguments),
                        environment: .custom(environment.subprocess), workingDirectory: home, platformOptions: options,
                        input: .none, output: .discarded, error: .discarded
                    ) { execution in
                        resume(.success(execution.processIdentifier.value))
                    }
                    onEnd(ApplicationLauncher.Ending(result.terminationStatus))
                } catch {
                    resume(.failure(LaunchError(starting: command.program, error)))
                }
            }
        }
        return try result.get()
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
        self.init("\(program) could not be started (\(reason))")
    }
}

extension [String: String] {
    /// As Subprocess wants it.
    var subprocess: [Environment.Key: String] {
        [Environment.Key: String](uniqueKeysWithValues: map { (Environment.Key(rawValue: $0)!, $1) })
    }
}
