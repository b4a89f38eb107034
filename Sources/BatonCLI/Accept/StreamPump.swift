// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
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
    /// has exited. So it is if nobody reads the output any more: `accept --stream | head` is no failure.
    func run() async throws {
        let (inputEnd, end) = (FirstResult<Void>(), FirstResult<Result<Void, any Error>>())
        // Nobody waits for these tasks, because a read of standard input and a write to a pipe cannot be cancelled.
        let tasks = [
            Task {
                await pumpInput()
                inputEnd.decide(())
            },
            Task {
                do {
                    if try await pumpOutput(), !inputIsTerminal { await inputEnd.value(ifCancelled: ()) }
                    end.decide(.success(()))
                } catch {
                    end.decide(.failure(error))
                }
            },
        ]
        defer { for task in tasks { task.cancel() } }
        try await end.value(ifCancelled: .failure(CommandError.interrupted)).get()
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

    private func pumpInput() async {
        do {
            while let buffer = try await input.read() { try await stream.write(buffer) }
        } catch is TransportError {
            // The other side needs no more input after its END. Like a broken pipe, that is no failure.
            return
        } catch {
            Output.complain("standard input cannot be read: \(error)")
        }
        await stream.finish()
    }

    /// - Returns: whether the output is whole; false if nobody reads it any more.
    private func pumpOutput() async throws -> Bool {
        do {
            var spent: Buffer?
            while let buffer = try await stream.read(reusing: spent) {
                try await output.write(buffer)
                spent = buffer
            }
            return true
        } catch let error as TransportError {
            throw Self.broken(error)
        } catch {
            await stream.reset(.cancelled)
            if error as? Errno == .brokenPipe { return false }
            throw CommandError.failed("standard output cannot be written to: \(error)")
        }
    }
}
