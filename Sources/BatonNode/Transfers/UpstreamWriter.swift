// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import SwiftProtobuf

/// Tells the origin on a document's stream first which bytes this device has, then how far it is.
///
/// Only one task at a time may write on that stream, so all others leave their news in the report. Progress is told
/// some five times a second, and repeated without news. The disk may take longer for one write than the origin waits
/// for a report.
final class UpstreamWriter: Sendable {
    /// How long the same is said again, in which nothing was written: an hour of a disk that does not go on. Then the
    /// origin hears no more, and gives up.
    static let longestStandstill = Duration.seconds(3600)

    private let stream: BatonTransport.Stream
    private let report: TransferReport
    /// How long the origin may take to read.
    private let deadline: Duration
    private let failure = Lock<HandoffError?>(nil)

    init(_ stream: BatonTransport.Stream, of report: TransferReport, deadline: Duration) {
        self.stream = stream
        self.report = report
        self.deadline = deadline
    }

    /// Tells signatures, and waits while the origin does not read. Not for when reports have begun.
    func tell(_ signatures: WireDocumentUpstream.OneOf_Kind) async throws(HandoffError) {
        try await send(.with { $0.kind = signatures }, orElse: "the other side did not take the signatures")
    }

    /// Does some work, and reports meanwhile. Nothing is written any more when this returns.
    ///
    /// - Parameter interval: how often without news.
    func reporting<Value>(
        every interval: Duration, during work: () async throws -> Value
    ) async throws -> Value {
        async let _: Void = {
            do throws(HandoffError) {
                try await report(every: interval)
            } catch {
                if !Task.isCancelled { failure.withLock { $0 = error } }
            }
        }()
        return try await work()
    }

    /// - Throws: why no more can be reported, such as an origin that does not read.
    func requireReports() throws(HandoffError) {
        if let failure = failure.withLock({ $0 }) { throw failure }
    }

    /// Says as the last word that the document is in place. That the origin could not be told takes nothing back.
    func tellCommitted() async {
        try? await send(report.upstream(committed: true), orElse: "the other side did not take that it is in place")
    }

    /// Reports until nothing was new for so long a time, or the task is cancelled.
    func report(
        every interval: Duration, standstill: Duration = longestStandstill
    ) async throws(HandoffError) {
        try await withStallWatch(deadline) { [stream, report] watch in
            let pause = min(DocumentService.progressInterval, interval)
            var (bytes, news, told) = (report.bytes, Instant.now, Instant.now)
            while Instant.now - news < standstill {
                try await Alarm.sleep(for: pause)
                let latest = report.bytes
                if latest != bytes {
                    (bytes, news) = (latest, .now)
                } else if Instant.now - told < interval {
                    continue
                }
                told = .now
                try await watch.bound("the other side did not take how far it is") {
                    try await stream.send(record: report.upstream())
                }
            }
        }
    }

    private func send(_ record: WireDocumentUpstream, orElse late: String) async throws(HandoffError) {
        try await withDeadline(deadline, late) { [stream] in try await stream.send(record: record) }
    }
}
