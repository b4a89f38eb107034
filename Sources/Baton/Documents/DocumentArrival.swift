// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import BatonTransport
import FoundationEssentials

/// The arrival of a continued activity's document on this device.
final class DocumentArrival: Sendable {
    private enum State {
        case onItsWay
        case arrived(URL)
        case failed(UserActivityError)
    }

    let changes = Document.newChanges()
    private let state: Lock<State>
    /// It is not fetched, and can be read all the same.
    private let isReadOnly: Bool

    /// - Parameter document: as the node describes it.
    init(_ document: WireContinuedDocument) {
        isReadOnly = !document.isLocal && document.path.isEmpty
        if document.isLocal {
            state = Lock(.arrived(URL(filePathBytes: document.path)))
        } else if isReadOnly {
            state = Lock(
                .failed(
                    UserActivityError(
                        .invalid, "the user accepted the activity without a folder for its document: it can be read")))
        } else {
            state = Lock(.onItsWay)
        }
    }

    /// Where the file is; `nil` until it has arrived.
    var place: URL? {
        state.withLock { state in
            guard case .arrived(let url) = state else { return nil }
            return url
        }
    }

    /// Whether it does not come.
    var hasFailed: Bool {
        state.withLock { state in
            guard case .failed = state else { return false }
            return !isReadOnly
        }
    }

    /// Follows the node's reports until the last one.
    ///
    /// - Parameter hasArrived: is called before any watcher.
    func follow(_ stream: BatonTransport.Stream, hasArrived: @Sendable (URL) -> Void) async {
        do throws(HandoffError) {
            for try await event in stream.records(of: WireDocumentEvent.self) {
                switch event.kind {
                case .progress(let report):
                    // Below the total, because the bytes still have to be put in place.
                    let received = min(report.bytes, max(report.total, 1) - 1)
                    changes.tell(.progress(received: received, total: report.total))
                case .arrived(let path):
                    let url = URL(filePathBytes: path)
                    hasArrived(url)
                    settle(.arrived(url), .arrived(url))
                case .failed(let failure):
                    fail(UserActivityError(HandoffError(failure)))
                case nil:
                    continue
                }
            }
            fail(UserActivityError(.notContinued, "the activity was let go before its document had arrived"))
        } catch {
            fail(UserActivityError(error))
        }
    }

    /// Waits for the file.
    func wait() async throws(UserActivityError) -> URL {
        // The watch begins before the look, so that no change between the two is missed.
        let news = changes.watch()
        if let url = try settled() { return url }
        for await _ in news {
            if let url = try settled() { return url }
        }
        if let url = try settled() { return url }
        guard !Task.isCancelled else {
            throw UserActivityError(.userCancelled, "nobody waits for the document any more")
        }
        throw UserActivityError(.notContinued, "the document was closed before it had arrived")
    }

    private func settled() throws(UserActivityError) -> URL? {
        switch state.withLock({ $0 }) {
        case .onItsWay: return nil
        case .arrived(let url): return url
        case .failed(let error): throw error
        }
    }

    private func fail(_ error: UserActivityError) {
        settle(.failed(error), .failed(error))
    }

    /// The first outcome counts.
    private func settle(_ outcome: State, _ change: Document.Change) {
        let isFirst = state.withLock { state in
            guard case .onItsWay = state else { return false }
            state = outcome
            return true
        }
        if isFirst { changes.tell(change) }
    }
}
