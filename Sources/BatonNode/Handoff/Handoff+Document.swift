// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

import struct SystemPackage.FilePath

/// The document of a handoff: what the origin says that it is, and its bytes, which can be read in any order before it
/// has arrived.
extension Handoff {
    /// The most bytes of one read: 16 MiB.
    nonisolated static let readBound: UInt64 = 16 << 20
    /// Reads that wait behind the one that is under way; one more is refused.
    nonisolated static let readLineBound = 8

    // MARK: Description

    /// The description by the origin. The origin is asked once, because from then on it sends that and nothing else. It
    /// is asked again when that has changed. It stays the same document: one was accepted.
    func description() async throws(HandoffError) -> DocumentDescription {
        if let described { return described }
        let (connection, claim) = try await presentClaim()
        let description = try await documents.describe(from: connection, claim: claim)
        known.size = plan.size(of: description.tree)
        try plan.requirePolicy(over: connection, size: known.size)
        let first = firstDescribed ?? (description.tree.label, description.identity)
        guard description.tree.label == first.label, !description.identity.isOther(than: first.identity) else {
            throw HandoffError(
                .documentUnreadable,
                "the other device offers another document in the place of \(first.label): accept it again")
        }
        // A file that was put in its place is the document from now on, and may be moved in its turn.
        firstDescribed = (first.label, description.identity)
        described = description
        return description
    }

    /// Forgets a description; a later one stays.
    private func forget(_ description: DocumentDescription) {
        if described?.version == description.version { described = nil }
    }

    // MARK: Reading

    /// Sends bytes of the document to an application, from the origin and ahead of what else is on its way. An
    /// application reads a document that is here by itself.
    ///
    /// - Throws: `noSuchClaim` if the activity is not held here, `invalidRequest` if it has no document,
    ///   `documentChanged` if it has another version now, and other failures of the origin. If the stream was answered,
    ///   the failure has aborted it.
    func read(_ range: FileRange, to stream: BatonTransport.Stream) async throws(HandoffError) {
        guard held != nil else { throw HandoffError(.noSuchClaim, "the activity has not been continued") }
        guard hasDocument else { throw HandoffError(.invalidRequest, "the activity has no document") }
        guard await reads.enter() else {
            throw HandoffError(
                .limitExceeded, "\(Self.readLineBound) reads of this document wait already: try again later")
        }
        defer { reads.leave() }
        let description = try await description()
        do {
            let (connection, claim) = try await presentClaim()
            try await documents.read(range, of: description, from: connection, claim: claim, to: stream)
        } catch {
            // The next read asks for a new description.
            if error.code == .documentChanged { forget(description) }
            throw error
        }
    }

    // MARK: Fetching

    /// Makes one attempt to fetch the document, and tells whoever asked and the application how it goes.
    func fetch(_ fetching: TransferRetry) async throws(HandoffError) -> HandoffTable.Core.Outcome {
        guard let destination = plan.destination else { throw HandoffError(.internal, "there is no folder") }
        if fetching.describesAnew { described = nil }
        if reporter == nil { reporter = continuation.map { DocumentReporter(to: $0) } }
        let hasTold = Lock(false)
        do {
            let (path, size) = try await offLoop { () throws(HandoffError) in
                try await fetch(fetching, into: destination) { hasTold.withLock { $0 = true } }
            }
            setArrived(at: Data(path), size: size)
            if let place, let application = continuing?.identifier { await grant(place, to: application) }
            reporter?.report(.arrived(Data(path)))
            return .done
        } catch {
            return .cut(
                error.code == .cancelled && !Task.isCancelled ? cancelledByOrigin : error,
                TransferRetry.Attempt(
                    bytes: progress.toldBytes, kept: progress.kept, hasTold: hasTold.withLock { $0 }))
        }
    }

    /// The application may use the document. A folder that hangs is not waited for.
    private func grant(_ place: FilePath, to application: String) async {
        try? await withDeadline(DocumentService.sharedFolderDeadline, "the shared folders were not there") { [files] in
            await files.grant(place, to: application)
        }
    }

    /// The user of the origin has cancelled the transfer.
    private var cancelledByOrigin: HandoffError {
        HandoffError(.cancelled, "the transfer was cancelled on \(plan.origin.name)", device: plan.origin.name)
    }

    private func fetch(
        _ fetching: TransferRetry, into destination: DestinationFolder, told: @escaping @Sendable () -> Void
    ) async throws(HandoffError) -> (path: [UInt8], size: UInt64) {
        let (reporter, progress) = (reporter, progress)
        let description = try await description()
        let (connection, claim) = try await presentClaim()
        async let _: Void = leaveStalled(connection, progress)
        let path = try await documents.fetch(
            description, for: plan, into: destination, usingCopies: fetching.usesCopies, from: connection,
            claim: claim, noting: progress,
            begin: { start in
                // A change that ended the last attempt was told.
                guard case .changed(let keepsOlder) = start, !fetching.describesAnew || !keepsOlder else { return }
                let label = description.tree.label
                let loss = ", and the disk has no room for both: what had come of the older version was deleted"
                let change = HandoffError(
                    .documentChanged,
                    "\(label) has changed since a part of it came\(keepsOlder ? "" : loss)")
                tellInterruption(change, waiting: .zero, keeping: 0)
            },
            told: told,
            progress: { [self] report in
                send(.progress(report))
                reporter?.report(.progress(report))
            })
        return (path, description.tree.size)
    }

    /// Ends a connection on which nothing comes and of which one end is not any more where it was: the kernel would
    /// keep such a connection for long. Returns when it is cancelled.
    private func leaveStalled(_ connection: Connection, _ progress: TransferReport) async {
        let start = Instant.now
        // The last bytes may have been on their way when the connection broke.
        while (try? await Alarm.sleep(for: TransferRetry.stallPatience / 4)) != nil {
            guard min(progress.stillness, .now - start) >= TransferRetry.stallPatience else { continue }
            let isThere = connections.isWhereAnnounced(connection, plan.origin.id)
            guard isThere else { return await connection.abort() }
        }
    }

    /// The same while an answer is waited for on a connection that led to where the origin was.
    func leaveMoved(_ connection: Connection) async {
        guard connections.isWhereAnnounced(connection, plan.origin.id) else { return }
        await leaveStalled(connection, TransferReport())
    }
}
