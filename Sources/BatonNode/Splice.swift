// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import BatonTransport

/// Joins two streams until both directions have ended: what is read from one is written to the other, END is passed on
/// as END, an abort as an abort with the same code, and a connection's end as an abort that says so. Back-pressure
/// passes through, because little is kept here: what one side does not read has its place in the budget, or stops the
/// other after one piece.
func splice(_ first: Stream, _ second: Stream, within part: ByteBudget.Part) async {
    await withTaskGroup { group in
        group.addTask { await pump(from: first, to: second, within: part) }
        group.addTask { await pump(from: second, to: first, within: part) }
    }
}

/// The most that waits in one direction of a spliced stream.
private let queueBound = 256 << 10

private func pump(from source: Stream, to sink: Stream, within part: ByteBudget.Part) async {
    let room = part.lease(atMost: queueBound)
    defer { withExtendedLifetime(room) {} }
    do {
        while let buffer = try await source.read() {
            try await sink.write(buffer, queueBound: room.bytes)
        }
        await sink.finish()
    } catch {
        let code = error.code.passedOn
        await source.reset(code)
        await sink.reset(code)
    }
}

extension TransportError.Code {
    /// How the other stream is aborted. That nobody cancelled, but one side crashed or was cut off, is told apart: an
    /// application stays silent about a user who cancels.
    fileprivate var passedOn: ApplicationErrorCode {
        switch self {
        case .reset(let code): code
        case .cancelled, .streamClosed: .cancelled
        case .limitExceeded: .limitExceeded
        case .unreachable, .refused, .protocolViolation, .connectionLost, .goingAway, .alreadyWaiting: .unreachable
        }
    }
}
