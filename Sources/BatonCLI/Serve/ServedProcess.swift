// SPDX-License-Identifier: Apache-2.0

import BatonMessages
import BatonProtocol
import BatonTransport
import Glibc
import Subprocess
import SystemPackage

/// One process with a continuation stream as its standard input and output.
///
/// The process has a group of its own, so that what it started ends with it. Its standard error is this command's.
struct ServedProcess {
    let command: ServedCommand
    let stream: BatonTransport.Stream

    enum End: Sendable {
        case exited(Int32)
        case signalled(Int32)
        /// The stream was reset, or this command stops: the process was ended.
        case aborted
        case notStarted(String)
    }

    /// How long a process has between SIGTERM and SIGKILL.
    private static let grace = Duration.seconds(1)
    /// How often it is looked whether a process that has closed its output, or a stream that has ended one way, is
    /// gone.
    private static let poll = Duration.milliseconds(100)
    /// How long the other side may go on sending to a process that has exited, before the stream is reset under it.
    private static let lingering = Duration.seconds(2)

    func run() async -> End {
        var options = PlatformOptions()
        options.processGroupID = 0
        let teardown = [TeardownStep.gracefulShutDown(toProcessGroup: true, allowedDurationToNextStep: Self.grace)]
        options.teardownSequence = teardown
        let stream = stream
        do {
            let result = try await Subprocess.run(
                command.executable.contains("/") ? .path(.init(command.executable)) : .name(command.executable),
                arguments: Arguments(command.arguments), platformOptions: options, input: .inputWriter,
                output: .sequence, error: .currentStandardError
            ) { execution in
                try await stream.respond(.continuationStream(WireContinuationStreamResponse()))
                let isWhole = await Self.join(execution, stream)
                if !isWhole { await execution.teardown(using: teardown) }
                return isWhole
            }
            guard result.closureResult else { return .aborted }
            // The other side may still be sending: what a process that is gone does not read is dropped.
            Task { await Self.drain(stream) }
            return switch result.terminationStatus {
            case .exited(let code): .exited(code)
            case .signaled(let signal): .signalled(signal)
            }
        } catch let error as SubprocessError {
            await stream.fail(HandoffError(.internal, "the command behind the stream could not be started"))
            return .notStarted("\(error)")
        } catch {
            await stream.reset(.cancelled)
            return .aborted
        }
    }

    private enum Step: Sendable {
        case inputEnded
        case outputEnded
        case exited
        case aborted
    }

    /// - Returns: `true` when the process has ended and its output is on its way whole.
    private static func join(
        _ execution: Execution<CustomWriteInput, SequenceOutput, FileDescriptorOutput>, _ stream: BatonTransport.Stream
    ) async -> Bool {
        let process = execution.processIdentifier.value
        return await withTaskGroup(of: Step.self) { group in
            group.addTask { await feed(execution, from: stream) }
            group.addTask { await collect(execution, into: stream) }
            defer { group.cancelAll() }
            for await step in group {
                switch step {
                case .inputEnded:
                    group.addTask { await watchForReset(stream) }
                case .outputEnded:
                    await stream.finish()
                    // A process may close its output and go on reading.
                    group.addTask { await waitForExit(of: process) }
                case .exited:
                    return true
                case .aborted:
                    guard !Task.isCancelled else { break }
                    await stream.reset(.cancelled)
                    return false
                }
                if Task.isCancelled {
                    await stream.reset(.cancelled)
                    return false
                }
            }
            return false
        }
    }

    /// Stream to standard input. The stream's END closes the input; a process that reads no more loses the rest.
    private static func feed(
        _ execution: Execution<CustomWriteInput, SequenceOutput, FileDescriptorOutput>,
        from stream: BatonTransport.Stream
    ) async -> Step {
        let writer = execution.standardInputWriter
        var reads = true
        do {
            var spent: Buffer?
            while let buffer = try await stream.read(reusing: spent) {
                if reads {
                    do {
                        _ = try await writer.write(Array(buffer.bytes))
                    } catch {
                        reads = false
                    }
                }
                spent = buffer
            }
        } catch {
            return .aborted
        }
        try? await writer.finish()
        return .inputEnded
    }

    /// Standard output to stream.
    private static func collect(
        _ execution: Execution<CustomWriteInput, SequenceOutput, FileDescriptorOutput>,
        into stream: BatonTransport.Stream
    ) async -> Step {
        do {
            for try await chunk in execution.standardOutput {
                try await stream.write(chunk.withUnsafeBytes { Buffer(copying: $0) })
            }
            return .outputEnded
        } catch is TransportError {
            return .aborted
        } catch {
            // The pipe broke, which only a dead process explains: what it wrote has been sent.
            return .outputEnded
        }
    }

    /// After the peer's END nothing is read any more; that the stream is reset shows only when it is asked.
    private static func watchForReset(_ stream: BatonTransport.Stream) async -> Step {
        while !Task.isCancelled {
            try? await Task.sleep(for: poll)
            do {
                _ = try await stream.read()
            } catch {
                break
            }
        }
        return .aborted
    }

    /// Looks without reaping: that is Subprocess's.
    private static func waitForExit(of process: pid_t) async -> Step {
        while !Task.isCancelled {
            var information = siginfo_t()
            let result = waitid(P_PID, id_t(process), &information, WEXITED | WNOHANG | WNOWAIT)
            // An error means that it has been reaped; a signal number, that it has ended and can be.
            if result != 0 || information.si_signo != 0 { return .exited }
            try? await Task.sleep(for: poll)
        }
        return .aborted
    }

    /// - Parameter stream: of whose other side nothing is known: it may say nothing, and end nothing.
    private static func drain(_ stream: BatonTransport.Stream) async {
        let patience = Task {
            try await Task.sleep(for: lingering)
            await stream.reset(.noError)
        }
        defer { patience.cancel() }
        var spent: Buffer?
        while let buffer = try? await stream.read(reusing: spent) { spent = buffer }
    }
}
