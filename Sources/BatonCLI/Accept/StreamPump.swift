// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTransport
import SystemPackage

/// Connects standard input and output to a continuation stream, both directions at once.
///
/// The end of one direction leaves the other open. Each direction keeps one buffer, so that a slow reader slows the
/// other side down.
final class StreamPump: Sendable {
    private let stream: BatonTransport.Stream
    private let input: ByteChannel
    private let output: ByteChannel
    private let inputIsTerminal: Bool

    private enum Outcome: Sendable {
        case inputEnded
        case inputFailed(any Error)
        case outputEnded
        case outputFailed(any Error)
    }

    init(
        _ stream: BatonTransport.Stream, input: FileDescriptor = .standardInput,
        output: FileDescriptor = .standardOutput
    ) throws {
        self.stream = stream
        self.input = try ByteChannel(input)
        self.output = try ByteChannel(output)
        inputIsTerminal = Terminal.isTerminal(input)
    }

    /// Runs until both directions have ended.
    ///
    /// If standard input is a terminal, the other side's end is enough: nobody wants to press ^D after a command that
    /// has exited.
    func run() async throws {
        let (outcomes, continuation) = AsyncStream<Outcome>.makeStream(bufferingPolicy: .bufferingOldest(2))
        // A task group would wait for the read of standard input, which cannot be cancelled.
        let tasks = [
            Task { continuation.yield(await self.pumpInput()) },
            Task { continuation.yield(await self.pumpOutput()) },
        ]
        defer { for task in tasks { task.cancel() } }
        try await withTaskCancellationHandler {
            try await wait(for: outcomes)
        } onCancel: {
            continuation.finish()
        }
    }

    private func wait(for outcomes: AsyncStream<Outcome>) async throws {
        var inputIsDone = false
        var outputIsDone = false
        for await outcome in outcomes {
            switch outcome {
            case .inputEnded:
                inputIsDone = true
            case .inputFailed(let error as TransportError):
                // The other side needs no more input after its END. Like a broken pipe, that is no failure.
                inputIsDone = true
                guard outputIsDone || error.code != .cancelled else { throw CommandError.interrupted }
            case .inputFailed(let error):
                inputIsDone = true
                Output.complain("standard input cannot be read: \(error)")
                await stream.finish()
            case .outputEnded:
                outputIsDone = true
                if inputIsTerminal { inputIsDone = true }
            case .outputFailed(let error as TransportError):
                throw Self.broken(error)
            case .outputFailed(let error):
                await stream.reset(.cancelled)
                // The reader needs no more output: `accept --stream | head` is no failure.
                if error as? Errno == .brokenPipe { return }
                throw CommandError.failed("standard output cannot be written to: \(error)")
            }
            if inputIsDone, outputIsDone { return }
        }
        throw CommandError.interrupted
    }

    private static func broken(_ error: TransportError) -> CommandError {
        switch error.code {
        case .reset(let code) where code.programStatus != nil:
            CommandError(.failed, code: "streamFailed", error.message)
        case .reset(let code):
            CommandError(
                .unreachable, "the other side aborted the stream (\(code)): what came may be cut short")
        case .cancelled:
            .interrupted
        case .unreachable, .refused, .protocolViolation, .connectionLost, .goingAway, .limitExceeded, .streamClosed,
            .alreadyWaiting:
            CommandError(
                .unreachable, "the stream broke (\(error)): what came may be cut short")
        }
    }

    private func pumpInput() async -> Outcome {
        do {
            while let buffer = try await input.read() { try await stream.write(buffer) }
            await stream.finish()
            return .inputEnded
        } catch {
            return .inputFailed(error)
        }
    }

    private func pumpOutput() async -> Outcome {
        do {
            var spent: Buffer?
            while let buffer = try await stream.read(reusing: spent) {
                try await output.write(buffer)
                spent = buffer
            }
            return .outputEnded
        } catch {
            return .outputFailed(error)
        }
    }
}
