// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonEventLoop
import BatonMessages
import BatonProtocol

/// Limits how many documents one device is sent at once, so that it leaves buffers and threads to the others.
@ControlLoop
final class TransferLimit {
    /// What is done for a device; each kind has places of its own.
    enum Work: Hashable {
        case document
        /// A preview does not wait for documents. Two run at once, and others wait in line.
        case preview
        /// Looking at all that is in a document, and telling it: a thread, and a tree in memory.
        case description
    }

    /// Previews of one device at once: 2, so that a reader that stands still keeps no other one waiting.
    private static let previewsPerDevice = 2

    private let boundPerDevice: Int
    /// The places that are taken.
    private(set) var lines: [Key: WaitingLine] = [:]
    /// The document that is being sent for each claim.
    private var sent: [ClaimID: Sent] = [:]

    struct Key: Hashable {
        let device: String
        let work: Work
    }

    private struct Sent {
        let abort: @Sendable () async -> Void
        var isSuperseded = false
        /// Newer requests of the same claim, which wait for its end: as many as the device has streams at the most.
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    /// - Parameter boundPerDevice: see ``NodeLimits/transfersPerDevice``.
    nonisolated init(perDevice boundPerDevice: Int = NodeLimits().transfersPerDevice) {
        self.boundPerDevice = boundPerDevice
    }

    /// Takes a place, which ``end(for:_:)`` gives back. For a preview it waits in line.
    ///
    /// - Throws: `limitExceeded` where the device has all of its places, and as many in line.
    func begin(for device: PeerName, _ work: Work = .document) async throws(HandoffError) {
        let (key, waits) = (Key(device: device.id, work: work), work == .preview)
        let line =
            lines[key]
            ?? WaitingLine(places: waits ? Self.previewsPerDevice : boundPerDevice, waiting: waits ? boundPerDevice : 0)
        lines[key] = line
        guard await line.enter() else {
            throw HandoffError(
                .limitExceeded,
                "\(boundPerDevice) documents are being sent to this device already: try again later")
        }
    }

    /// Takes a place for the document of a claim, which ``end(for:claim:)`` gives back.
    ///
    /// An older transfer of the same claim is ended first, and gives its place back. Its holder has given it up, for
    /// example to continue on another connection.
    ///
    /// - Parameter abort: makes the transfer end soon.
    /// - Throws: `limitExceeded` where the device has all of its places for other documents.
    func begin(
        for device: PeerName, claim: ClaimID, aborting abort: @escaping @Sendable () async -> Void
    ) async throws(HandoffError) {
        while let older = sent[claim] {
            if !older.isSuperseded {
                sent[claim]?.isSuperseded = true
                await older.abort()
            }
            await withCheckedContinuation { continuation in
                // It may have ended while it was told to.
                guard sent[claim] != nil else { return continuation.resume() }
                sent[claim]?.waiting.append(continuation)
            }
        }
        try await begin(for: device)
        sent[claim] = Sent(abort: abort)
    }

    /// Ends what is being sent for a claim, if anything is.
    func cancel(_ claim: ClaimID) async { await sent[claim]?.abort() }

    /// Whether a newer request of the claim waits for this transfer's end.
    func isSuperseded(_ claim: ClaimID) -> Bool { sent[claim]?.isSuperseded ?? false }

    /// The document of a claim is not being sent any more.
    func end(for device: PeerName, claim: ClaimID) {
        end(for: device)
        for waiting in sent.removeValue(forKey: claim)?.waiting ?? [] { waiting.resume() }
    }

    /// Waits until nothing is being sent, or the time is over.
    func drained(within grace: Duration) async {
        let deadline = ContinuousClock.now + grace
        while !lines.isEmpty, ContinuousClock.now < deadline {
            try? await Alarm.sleep(for: .milliseconds(50))
        }
    }

    func end(for device: PeerName, _ work: Work = .document) {
        let key = Key(device: device.id, work: work)
        lines[key]?.leave()
        if lines[key]?.isIdle == true { lines[key] = nil }
    }
}
