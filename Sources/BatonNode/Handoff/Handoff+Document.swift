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

/// The document of a handoff, which goes on coming when the link, a node or the document itself gave way.
extension Handoff {
    /// Fetches the document, and tells whoever asked and the application how it goes.
    func fetch(
        _ document: HandoffDocument, into destination: DestinationFolder
    ) async throws(HandoffError) -> (path: Data, size: UInt64, received: UInt64) {
        let reporter = DocumentReporter(to: continuation)
        let progress = LatestProgress()
        do {
            let (path, size) = try await progress.repeating(
                { [events] report in
                    events.send(.progress(report))
                },
                during: { () throws(HandoffError) in
                    try await fetchAgain(document, into: destination, telling: reporter, progress)
                })
            if let place = FilePath(bytes: path) {
                document.setArrived(at: place)
                if let application = continuing?.application.identifier { await grant(place, to: application) }
            }
            reporter.report(.arrived(Data(path)))
            return (Data(path), size, progress.received)
        } catch {
            let error = error.code == .cancelled && !Task.isCancelled ? cancelledByOrigin : error
            reporter.report(.failed(error.failure))
            await reporter.end()
            hasToldOfDocument = true
            throw error
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

    /// Fetches until it is whole, or what stands in the way does not pass by itself.
    private func fetchAgain(
        _ document: HandoffDocument, into destination: DestinationFolder, telling reporter: DocumentReporter,
        _ progress: LatestProgress
    ) async throws(HandoffError) -> (path: [UInt8], size: UInt64) {
        let events = events
        var retry = TransferRetry(now: .now)
        var isToldOfPlaces = false
        // Whether that it is another version than what came before is told already, and nothing of it has come since.
        let isToldOfChange = Lock(false)
        let lastTold = Lock<Instant?>(nil)
        var order = DocumentOrder(
            title: plan.activity.title, type: plan.activity.type, origin: plan.origin.id, folder: destination,
            naming: plan.naming, copies: plan.copies, rule: plan.rule)
        while true {
            do {
                let description = try await document.description()
                order.sharedCopy = await sharedCopy(of: description)
                let (connection, claim) = try await presentClaim()
                order.usesCopies = retry.usesCopies
                async let _: Void = leaveStalled(connection, progress)
                let path = try await documents.fetch(
                    description, for: order, from: connection, claim: claim,
                    begin: { start in
                        let wasTold = isToldOfChange.withLock { isTold in
                            defer { isTold = start != .unchanged }
                            return isTold
                        }
                        guard case .changed(let keepsOlder) = start, !wasTold || !keepsOlder else { return }
                        let label = description.tree.label
                        let loss = ", and the disk has no room for both: what had come of the older version was deleted"
                        let change = HandoffError(
                            .documentChanged,
                            "\(label) has changed since a part of it came\(keepsOlder ? "" : loss)")
                        Self.tell(change, waiting: 0, keeping: 0, to: events)
                    },
                    told: { lastTold.withLock { $0 = .now } },
                    ended: { kept in
                        progress.end(keeping: kept)
                        events.end(keeping: kept)
                    },
                    progress: { report in
                        progress.set(report)
                        let report = report.progress()
                        if report.bytes > report.resumedBytes { isToldOfChange.withLock { $0 = false } }
                        events.send(.progress(report))
                        reporter.report(.progress(report))
                    })
                return (path, description.tree.size)
            } catch {
                if let time = lastTold.withLock({ $0.take() }) { retry.note(told: time) }
                retry.note(bytes: progress.bytes, now: .now)
                let verdict = retry.verdict(on: error, now: .now)
                guard !Task.isCancelled else { throw HandoffError(.cancelled, "the handoff was cancelled") }
                // Asked again and again, and told once.
                let waitsForPlace = if case .waitForPlace = verdict { true } else { false }
                if !waitsForPlace || !isToldOfPlaces { tellInterruption(error, verdict, keeping: progress.kept) }
                isToldOfPlaces = waitsForPlace
                if error.code == .documentChanged { isToldOfChange.withLock { $0 = true } }
                try await overcome(error, verdict, document)
            }
        }
    }

    /// What this device has of the document in a folder that both share, where a user has accepted it: its origin hears
    /// digests of that, and none by a rule. A folder that hangs is not waited for.
    private func sharedCopy(of description: DocumentDescription) async -> FilePath? {
        guard plan.rule == nil, !description.sharedURL.isEmpty else { return nil }
        let found = try? await withDeadline(
            DocumentService.sharedFolderDeadline, "the shared folders were not there"
        ) { [files, title = plan.activity.title] in
            await files.olderCopy(of: description.sharedURL, labelled: description.tree.label, accepted: title)
        }
        return found ?? nil
    }

    private func tellInterruption(
        _ error: HandoffError, _ verdict: TransferRetry.Verdict, keeping bytes: UInt64
    ) {
        let waits: UInt32
        switch verdict {
        case .giveUp: return
        case .describeAgain: waits = 0
        case .waitForDevice(let end), .waitForPlace(_, let end):
            waits = UInt32(clamping: (end - .now).components.seconds)
        }
        Self.tell(error, waiting: waits, keeping: bytes, to: events)
    }

    private nonisolated static func tell(
        _ error: HandoffError, waiting waits: UInt32, keeping bytes: UInt64,
        to events: HandoffEvents
    ) {
        events.send(
            .interrupted(
                .with {
                    $0.cause = error.shortened.failure
                    $0.keptBytes = bytes
                    $0.waitsSeconds = waits
                }))
    }

    private func overcome(
        _ error: HandoffError, _ verdict: TransferRetry.Verdict, _ document: HandoffDocument
    ) async throws(HandoffError) {
        switch verdict {
        case .giveUp: throw error
        case .describeAgain(let pause):
            try await rest(pause)
            document.forgetDescription()
        case .waitForDevice(let end):
            try await waitForDevice(until: end, because: error, for: document)
        case .waitForPlace(let pause, _):
            try await rest(pause)
        }
    }

    /// Waits until the origin can be reached and holds a claim of this handoff: the same, or a new one where it forgot.
    private func waitForDevice(
        until end: Instant, because cause: HandoffError, for document: HandoffDocument
    ) async throws(HandoffError) {
        var wait = TransferRetry.Wait(until: end)
        while true {
            do {
                return try await renewClaim(for: document)
            } catch {
                guard TransferRetry.isAway(error), !Task.isCancelled else { throw error }
            }
            guard let pause = wait.pause(now: .now) else { throw cause }
            await connections.awaitAnnouncement(of: plan.origin.id, atMost: pause)
            try await rest(TransferRetry.shortestGap)
        }
    }

    /// Ends a connection on which nothing comes and of which one end is not any more where it was: the kernel would
    /// keep such a connection for long. Returns when it is cancelled.
    private func leaveStalled(_ connection: Connection, _ progress: LatestProgress) async {
        let start = Instant.now
        while !Task.isCancelled {
            await connections.awaitAnnouncement(of: plan.origin.id, atMost: TransferRetry.stallPatience)
            // What came a moment ago may have been on its way when the connection broke.
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

    private func rest(_ pause: Duration) async throws(HandoffError) {
        do {
            try await Alarm.sleep(for: pause)
        } catch {
            throw HandoffError(.cancelled, "the handoff was cancelled")
        }
    }
}
