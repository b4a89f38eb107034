// SPDX-License-Identifier: Apache-2.0

/// An aborted stream, and the code that its RESET will carry.
struct WaitingReset {
    let stream: Stream
    let code: ApplicationErrorCode
}

// How streams are aborted: RESETs leave no faster than every peer takes them.
extension Session {
    /// Aborts a stream that the peer knows of. Nothing more is sent for it, what comes is discarded, and its place
    /// stays taken until the RESET has its turn: at once, except in a flood.
    mutating func abort(_ stream: Stream, _ code: ApplicationErrorCode) {
        let discarded = stream.receiveWindow.unconsumed
        dropQueued(of: stream)
        streams.abort(stream)
        waitingResets.append(WaitingReset(stream: stream, code: code))
        sendDueResets()
        giveBack(discarded)
        // The application is done with it: a connection that closes does not wait for RESETs.
        reportIfDrained()
    }

    /// Queues the RESETs whose turn has come.
    mutating func sendDueResets() {
        while let next = waitingResets.first, buckets.sentResets.take(now: present) {
            waitingResets.popFirst()
            enqueue(.reset(next.stream.id, next.code))
            // Frames of the peer may be under way that now have no effect; they are not its fault.
            buckets.emptyFrames.refund(4)
            forget(next.stream)
        }
    }

    /// When the next RESET has its turn, nil when none waits.
    var nextReset: Instant? {
        waitingResets.isEmpty ? nil : buckets.sentResets.nextToken
    }

    /// The peer has ended an aborted stream, or never takes it: it needs no RESET any more.
    mutating func dropWaitingReset(of stream: Stream) {
        waitingResets.keep { $0.stream !== stream }
        forget(stream)
    }
}
