// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import BatonTransport

/// Joins two streams until both directions have ended.
///
/// Bytes that are read from one stream are written to the other. END is passed on as END, and an abort as an abort with
/// the same code. The end of a connection is passed on as an abort that says so. Back-pressure passes through: a
/// direction keeps at most ``queueBound`` bytes within the budget, or one piece if the budget has no room.
func splice(_ first: Stream, _ second: Stream, within part: ByteBudget.Part) async {
    async let there = pump(from: first, to: second, within: part)
    async let back = pump(from: second, to: first, within: part)
    let refusals = await (there: there, back: back)
    // Only now: what the stream that takes no more has sent is on its way to the other one until here.
    if let code = refusals.there { await stop(first, code) }
    if let code = refusals.back { await stop(second, code) }
}

/// The most bytes that wait in one direction of a spliced stream: 256 KiB.
private let queueBound = 256 << 10

/// - Returns: the code of the sink's RESET if that keeps what the sink sent before. The source is to be stopped with
///   it.
private func pump(
    from source: Stream, to sink: Stream, within part: ByteBudget.Part
) async -> ApplicationErrorCode? {
    let room = part.lease(atMost: queueBound)
    defer { withExtendedLifetime(room) {} }
    do throws(TransportError) {
        while let buffer = try await source.read() {
            do throws(TransportError) {
                try await sink.write(buffer, queueBound: room.bytes)
            } catch {
                if case .reset(let code) = error.code, code.keepsInput { return code }
                throw error
            }
        }
        await sink.finish()
    } catch {
        let code = error.code.passedOn
        await source.reset(code)
        if code.keepsInput { await stop(sink, code) } else { await sink.reset(code) }
    }
    return nil
}

/// Resets a stream when all that was written to it has left.
private func stop(_ stream: Stream, _ code: ApplicationErrorCode) async {
    _ = try? await stream.drained()
    await stream.reset(code)
}

extension TransportError.Code {
    /// How the other stream is aborted. A crash or a broken connection is not passed on as a cancellation: applications
    /// stay silent about a user who cancels.
    fileprivate var passedOn: ApplicationErrorCode {
        switch self {
        case .reset(let code): code
        case .cancelled, .streamClosed: .cancelled
        case .limitExceeded: .limitExceeded
        case .unreachable, .refused, .protocolViolation, .connectionLost, .goingAway, .alreadyWaiting: .unreachable
        }
    }
}
