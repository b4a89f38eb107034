// SPDX-License-Identifier: Apache-2.0

import BatonMessages
import BatonTransport
import SwiftProtobuf

/// Tells an application how the document of its activity is doing, without ever waiting for it.
struct DocumentReporter: Sendable {
    /// Reports that wait for an application that does not read; older ones are lost beyond it.
    private static let bound = 16

    private let reports: AsyncStream<WireDocumentEvent>.Continuation
    private let sending: Task<Void, Never>

    /// - Parameter stream: of the activity.
    init(to stream: BatonTransport.Stream) {
        let (waiting, continuation) = AsyncStream<WireDocumentEvent>.makeStream(
            bufferingPolicy: .bufferingNewest(Self.bound))
        reports = continuation
        sending = Task {
            for await report in waiting {
                guard (try? await stream.send(record: report)) != nil else { return }
            }
        }
    }

    /// Reports, and after the last one lets the stream's other uses go on.
    func report(_ kind: WireDocumentEvent.OneOf_Kind) {
        reports.yield(.with { $0.kind = kind })
        switch kind {
        case .progress: break
        case .arrived, .failed: reports.finish()
        }
    }

    /// Waits until the last report is on its way.
    func end() async { await sending.value }
}
