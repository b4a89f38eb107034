// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import BatonTransport
import FoundationEssentials

final class DocumentArrival: Sendable {
    let changes = Document.newChanges()
    /// The place of the file, or why it does not come; nil while it is on its way.
    private let outcome: Lock<Result<URL, UserActivityError>?>
    /// It is not fetched, and can be read all the same.
    private let isReadOnly: Bool

    init(_ document: WireContinuedDocument) {
        isReadOnly = !document.isLocal && document.path.isEmpty
        if document.isLocal {
            outcome = Lock(.success(URL(filePathBytes: document.path)))
        } else if isReadOnly {
            let reason = "the user accepted the activity without a folder for its document: it can be read"
            outcome = Lock(.failure(UserActivityError(.invalid, reason)))
        } else {
            outcome = Lock(nil)
        }
    }

    /// Where the file is; `nil` until it has arrived.
    var place: URL? { try? settled() }

    var hasFailed: Bool { if case .failure? = outcome.withLock({ $0 }) { !isReadOnly } else { false } }

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
                    settle(.success(url), .arrived(url))
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

    private func settled() throws(UserActivityError) -> URL? { try outcome.withLock { $0 }?.get() }

    private func fail(_ error: UserActivityError) { settle(.failure(error), .failed(error)) }

    /// The first outcome counts.
    private func settle(_ result: Result<URL, UserActivityError>, _ change: Document.Change) {
        let isFirst = outcome.withLock { outcome in
            guard outcome == nil else { return false }
            outcome = result
            return true
        }
        if isFirst { changes.tell(change) }
    }
}
