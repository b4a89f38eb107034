// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonDocuments
import BatonMessages
import BatonProtocol

/// The progress of a transfer in `--json`: the same facts as on a terminal.
struct ProgressMembers {
    private var progress: TransferProgress?

    /// The members of one event.
    ///
    /// `bytes` is always less than `total`: only `continued` says that the document is verified and in place.
    mutating func members(_ event: WireProgressReport, now: Instant) -> [JSONValue.Member] {
        var current: TransferProgress
        if let progress, progress.total == event.total {
            current = progress
            current.update(bytes: event.bytes, now: now)
        } else {
            // A new transfer, or a version of the document with another size.
            current = TransferProgress(total: event.total, bytes: event.bytes, now: now)
        }
        progress = current
        let left = current.isComplete ? nil : current.timeLeft(now: now)
        return [
            JSONValue.Member("bytes", .count(min(event.bytes, max(event.total, 1) - 1))),
            JSONValue.Member("total", .count(event.total)),
            JSONValue.Member("rate", current.rate(now: now).map { .count(UInt64(min($0, 1e18))) } ?? .null),
            JSONValue.Member("secondsLeft", left.map { .count(UInt64($0.components.seconds)) } ?? .null),
            JSONValue.Member("bottleneck", .string(event.bottleneck.text)),
        ]
    }
}
