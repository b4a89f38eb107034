// SPDX-License-Identifier: Apache-2.0

/// An aborted stream, and the code of its RESET.
struct WaitingReset {
    let stream: SessionStream
    let code: ApplicationErrorCode
}

// Aborting streams: RESET frames leave no faster than every peer accepts them.
extension Session {
    /// Aborts a stream that the peer knows of. Nothing more is sent for it, and arriving bytes are discarded. It counts
    /// as open until its RESET is sent, which is at once unless too many wait.
    mutating func abort(_ stream: SessionStream, _ code: ApplicationErrorCode) {
        let discarded = stream.receiveWindow.unconsumed
        dropQueued(of: stream)
        streams.abort(stream)
        waitingResets.append(WaitingReset(stream: stream, code: code))
        sendDueResets()
        returnCredit(discarded)
        // The application is done with it, so a connection that closes does not wait for RESETs.
        reportIfDrained()
    }

    /// Queues the RESETs that are due.
    mutating func sendDueResets() {
        while let next = waitingResets.first, buckets.sentResets.spend(now: present) {
            waitingResets.popFirst()
            enqueue(.reset(next.stream.id, next.code))
            // Frames of the peer may be on their way that now have no effect. That is not the peer's fault.
            buckets.emptyFrames.refund(4)
            forget(next.stream)
        }
    }

    /// The time of the next RESET, nil if none waits.
    var nextReset: Instant? {
        waitingResets.isEmpty ? nil : buckets.sentResets.nextToken
    }

    /// Forgets an aborted stream without a RESET, because the peer has ended it or will never process it.
    mutating func dropWaitingReset(of stream: SessionStream) {
        waitingResets.keep { $0.stream !== stream }
        forget(stream)
    }
}
