// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonDocuments
import BatonMessages
import BatonProtocol

/// What `--json` tells of a transfer that is under way: all that the line on a terminal has.
struct ProgressMembers {
    private var progress: TransferProgress?

    /// The members of one event.
    ///
    /// As on the terminal it is never all of it: only *continued* says that the document is verified and in place.
    mutating func members(_ event: WireProgressReport, now: Instant) -> [JSONValue.Member] {
        var current: TransferProgress
        if let progress, progress.total == event.total {
            current = progress
            current.update(bytes: event.bytes, now: now)
        } else {
            // The first of a transfer, or of a version of the document of another size.
            current = TransferProgress(total: event.total, bytes: event.bytes, now: now)
        }
        progress = current
        let left = current.isComplete ? nil : current.timeLeft(now: now)
        return [
            JSONValue.Member("bytes", .count(min(event.bytes, max(event.total, 1) - 1))),
            JSONValue.Member("total", .count(event.total)),
            JSONValue.Member("rate", current.rate(now: now).map { .count(UInt64($0)) } ?? .null),
            JSONValue.Member("secondsLeft", left.map { .count(UInt64($0.components.seconds)) } ?? .null),
            JSONValue.Member("bottleneck", .string(event.bottleneck.text)),
        ]
    }
}
