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
            throw LaunchError("\(command.program) could not be started (\(error))")
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
        self.init("\(program) could not be started (\(reason))")
    }
}

extension [String: String] {
    /// As Subprocess wants it.
    var subprocess: [Environment.Key: String] {
        [Environment.Key: String](uniqueKeysWithValues: map { (Environment.Key(rawValue: $0)!, $1) })
    }
}

/// The end of what a process writes to standard error.
///
/// `tail` keeps it, in a process of its own. A pipe to this process would break when this process ends, and the other
/// one, which goes on, would fail at its next write. Without a program `tail` nothing is kept.
final class ErrorOutput: Sendable {
    /// The most bytes that are kept. Default 2 KiB.
    private static let bound = 2 << 10
    /// How long the output is waited for after the process has ended: its children may keep it open. Default 500 ms.
    private static let patience = Duration.milliseconds(500)

    /// Where the process is to write to, open until ``closeWriter()``.
    let descriptor: FileDescriptor
    private let isClosed = Lock(false)
    private let output: AsyncStream<[UInt8]>

    /// Opens an output, and starts `tail` to read it.
    init(_ search: ExecutableSearch) throws(Errno) {
        let (output, kept) = AsyncStream<[UInt8]>.makeStream(bufferingPolicy: .bufferingNewest(1))
        self.output = output
        do {
            guard let tail = try? search.find("tail") else {
                descriptor = try FileDescriptor.open("/dev/null", .writeOnly, options: .closeOnExec)
                kept.finish()
                return
            }
            let ends = try FileDescriptor.pipe(options: .closeOnExec)
            descriptor = ends.writeEnd
            Task.detached {
                var options = PlatformOptions()
                options.createSession = true
                let result = try? await Subprocess.run(
                    .path(tail), arguments: ["-c", "\(Self.bound)"], platformOptions: options,
                    input: .fileDescriptor(ends.readEnd, closeAfterSpawningProcess: true),
                    output: .bytes(limit: Self.bound), error: .discarded)
                if let result { kept.yield(result.standardOutput) }
                kept.finish()
            }
        } catch {
            throw error as? Errno ?? .ioError
        }
    }

    deinit { closeWriter() }

    /// Closes this process's own end, which has to be done once the other process has it.
    func closeWriter() {
        let wasClosed = isClosed.withLock { isClosed in
            defer { isClosed = true }
            return isClosed
        }
        if !wasClosed { try? descriptor.close() }
    }

    /// The last lines that were written; to be asked for once, after the process has ended.
    func lastLines() async -> [String] {
        let bytes = await value(within: Self.patience) { [output] in await output.first { _ in true } }
        return Self.lastLines(of: String(decoding: bytes ?? [], as: UTF8.self))
    }

    /// The last three lines of a text that are not empty, at most 200 characters of each, without control characters.
    static func lastLines(of text: String) -> [String] {
        text.split(whereSeparator: \.isNewline)
            .map { line in
                let shown = line.unicodeScalars.filter { $0.properties.generalCategory != .control }
                return String(String.UnicodeScalarView(shown))
            }
            .filter { !$0.allSatisfy(\.isWhitespace) }
            .suffix(3).map { String($0.prefix(200)) }
    }
}
