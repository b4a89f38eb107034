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

/// The document of a handoff.
extension Handoff {
    /// Makes one attempt to fetch the document, and tells whoever asked and the application how it goes.
    func fetch(usingCopies usesCopies: Bool) async throws(HandoffError) -> HandoffTable.Core.Outcome {
        guard let destination = plan.destination else { throw HandoffError(.internal, "there is no folder") }
        let document = try document()
        let reporter = reporter ?? DocumentReporter(to: continuation)
        self.reporter = reporter
        let lastTold = Lock<Instant?>(nil)
        do {
            let (path, size) = try await offLoop { () throws(HandoffError) in
                try await fetch(document, into: destination, usingCopies: usesCopies, telling: reporter) {
                    lastTold.withLock { $0 = .now }
                }
            }
            if let place = FilePath(bytes: path) {
                document.setArrived(at: place)
                if let application = continuing?.application.identifier { await grant(place, to: application) }
            }
            reporter.report(.arrived(Data(path)))
            setArrived(at: Data(path), size: size)
            return .done
        } catch {
            if error.code == .documentChanged { events.isToldOfChange.withLock { $0 = true } }
            return .cut(
                error.code == .cancelled && !Task.isCancelled ? cancelledByOrigin : error,
                TransferRetry.Attempt(
                    bytes: progress.bytes, kept: progress.kept, told: lastTold.withLock { $0 }))
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
        _ document: HandoffDocument, into destination: DestinationFolder, usingCopies usesCopies: Bool,
        telling reporter: DocumentReporter, told: @escaping @Sendable () -> Void
    ) async throws(HandoffError) -> (path: [UInt8], size: UInt64) {
        let (events, progress) = (events, progress)
        let description = try await document.description()
        var order = DocumentOrder(
            title: plan.activity.title, type: plan.activity.type, origin: plan.origin.id, folder: destination,
            naming: plan.naming, copies: plan.copies, rule: plan.rule)
        order.sharedCopy = await sharedCopy(of: description)
        order.usesCopies = usesCopies
        let (connection, claim) = try await presentClaim()
        async let _: Void = leaveStalled(connection, progress)
        let path = try await documents.fetch(
            description, for: order, from: connection, claim: claim,
            begin: { start in
                let wasTold = events.isToldOfChange.withLock { isTold in
                    defer { isTold = start != .unchanged }
                    return isTold
                }
                guard case .changed(let keepsOlder) = start, !wasTold || !keepsOlder else { return }
                let label = description.tree.label
                let loss = ", and the disk has no room for both: what had come of the older version was deleted"
                let change = HandoffError(
                    .documentChanged,
                    "\(label) has changed since a part of it came\(keepsOlder ? "" : loss)")
                events.tellInterruption(change, waiting: .zero, keeping: 0)
            },
            told: told,
            ended: { kept in
                progress.end(keeping: kept)
                events.end(keeping: kept)
            },
            progress: { report in
                progress.set(report)
                let report = report.progress()
                if report.bytes > report.resumedBytes { events.isToldOfChange.withLock { $0 = false } }
                events.send(.progress(report))
                reporter.report(.progress(report))
            })
        return (path, description.tree.size)
    }

    /// The copy of the document in a folder that both devices share, if a user has accepted it. The origin hears
    /// digests of the copy, and none by a rule. A folder that hangs is not waited for.
    private func sharedCopy(of description: DocumentDescription) async -> FilePath? {
        guard plan.rule == nil, !description.sharedURL.isEmpty else { return nil }
        let found = try? await withDeadline(
            DocumentService.sharedFolderDeadline, "the shared folders were not there"
        ) { [files, title = plan.activity.title] in
            await files.olderCopy(of: description.sharedURL, labelled: description.tree.label, accepted: title)
        }
        return found ?? nil
    }

    /// Ends a connection on which nothing comes and of which one end is not any more where it was: the kernel would
    /// keep such a connection for long. Returns when it is cancelled.
    private func leaveStalled(_ connection: Connection, _ progress: LatestProgress) async {
        let start = Instant.now
        while !Task.isCancelled {
            await connections.awaitAnnouncement(of: plan.origin.id, atMost: TransferRetry.stallPatience)
            // The last bytes may have been on their way when the connection broke.
            let rest = TransferRetry.stallPatience - min(progress.stillness, .now - start)
            if rest > .zero {
                guard (try? await Alarm.sleep(for: rest)) != nil else { return }
                guard progress.stillness >= TransferRetry.stallPatience else { continue }
            }
            let isThere = connections.isWhereAnnounced(connection, plan.origin.id)
            guard isThere else { return await connection.abort() }
        }
    }

    /// The same while an answer is waited for on a connection that led to where the origin was.
    func leaveMoved(_ connection: Connection) async {
        guard connections.isWhereAnnounced(connection, plan.origin.id) else { return }
        await leaveStalled(connection, LatestProgress())
    }
}
