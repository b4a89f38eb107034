// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf
import SystemPackage

/// Answers applications about what they continue: bytes of its document, files, and continuation streams. Lists
/// documents in transfer and kept parts for the user of this device.
extension ControlService {
    /// Bytes of the document of an activity that the application continues, from the origin.
    func documentRead(
        _ request: WireDocumentReadRequest, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        let range = try Self.range(of: request)
        try await handoff(request.handoffID).read(range, to: stream)
    }

    private func handoff(_ bytes: Data) throws(HandoffError) -> Handoff {
        guard let id = HandoffID(bytes), let handoff = handoffs[id] else {
            throw HandoffError(.noSuchClaim, "the activity has not been continued by this application")
        }
        return handoff
    }

    /// Which bytes a read asks for; whether the document has them is not known yet.
    nonisolated static func range(of request: WireDocumentReadRequest) throws(HandoffError) -> FileRange {
        guard request.length <= Handoff.readBound else {
            throw HandoffError(
                .invalidRequest, "at most \(Handoff.readBound) bytes of a document can be read at once")
        }
        let (end, overflow) = request.offset.addingReportingOverflow(request.length)
        let bytes = request.offset..<(overflow ? .max : end)
        let version = FileVersion(bytes: request.version)
        guard version != nil || request.version.isEmpty else {
            throw HandoffError(.invalidRequest, "a version has \(FileVersion.byteCount) bytes")
        }
        guard !request.path.isEmpty else { return FileRange(bytes: bytes, version: version) }
        do {
            return FileRange(bytes: bytes, path: try EntryPath(request.path), version: version)
        } catch {
            throw HandoffError(.invalidRequest, "“\(error.subject)” is no path of a file in a folder")
        }
    }

    func requireAccess(_ request: WireAccessRequest, by application: Connection) async throws(HandoffError) {
        let path = try FilePath(absolute: request.path, "the path")
        let identifier = applications.identifier(on: application)
        try await withDeadline(SharedFiles.deadline, SharedFiles.silence) { [files] in
            try await files.requireAccess(to: path, by: identifier)
        }
    }

    func continuationStream(
        _ request: WireContinuationStreamRequest, from application: Connection, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        let handoff = try handoff(request.claimID)
        let number = try handoffs.enterStream(of: application)
        defer { handoffs.leaveStream(number) }
        let toOrigin = try await handoff.openContinuationStream()
        do {
            try await stream.respond(.continuationStream(.init()))
        } catch {
            await toOrigin.reset(.cancelled)
            await toOrigin.untilClosed()
            throw error
        }
        await splice(stream, toOrigin, within: streams)
        // Where it was aborted, the place is taken until the other device knows.
        await toOrigin.untilClosed()
    }

    func transfers(on stream: BatonTransport.Stream) async throws(HandoffError) {
        let (offered, running) = (offers.listing, runningTransfers)
        let parts = try await documents.keptParts()
        try await stream.respond(.transfers(.init()))
        for offer in offered { try await stream.send(record: WireTransferListing.with { $0.offer = offer }) }
        for transfer in running { try await stream.send(record: WireTransferListing.with { $0.transfer = transfer }) }
        for part in parts.map(message) { try await stream.send(record: WireTransferListing.with { $0.part = part }) }
        await stream.finish()
    }

    func cancelTransfer(_ request: WireCancelTransferRequest) async throws(HandoffError) -> WireCancelTransferResponse {
        let found = try Self.only(runningTransfers, idPrefix: request.idPrefix, "transfer") {
            $0.id.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }
        var cancelled: WireTransfer?
        switch found.direction {
        case .sending:
            if let claim = ClaimID(found.id) {
                cancelled = offers.cancelTransfer(claim)
                await documents.limit.cancel(claim)
            }
        case .receiving, .UNRECOGNIZED:
            if let handoff = HandoffID(found.id) { cancelled = await handoffs.cancelTransfer(handoff) }
        }
        guard let cancelled else { throw HandoffError(.noSuchActivity, "the transfer ended before it was cancelled") }
        return .with { $0.transfer = cancelled }
    }

    func discardPart(_ request: WireDiscardPartRequest) async throws(HandoffError) -> WireDiscardPartResponse {
        let part = try Self.only(await documents.keptParts(), idPrefix: request.idPrefix, "kept part", id: \.id)
        try await documents.discard(part)
        let message = message(of: part)
        return .with { $0.part = message }
    }

    /// Documents in both directions, those that are sent first.
    private var runningTransfers: [WireTransfer] {
        let (sent, received) = (offers.transfers, handoffs.transfers)
        func sorted(_ transfers: [WireTransfer]) -> [WireTransfer] {
            transfers.sorted { ($0.title, $0.device) < ($1.title, $1.device) }
        }
        return sorted(sent) + sorted(received)
    }

    private func message(of part: KeptPart) -> WireKeptPart {
        let device = directory.name(of: part.origin)
        return .with {
            $0.id = part.id
            $0.name = Data(part.name)
            $0.device = device.name
            $0.deviceID = device.id
            $0.folder = Data(part.folder.bytes)
            $0.bytes = part.bytes
            $0.total = part.total
            $0.changed = part.changed
        }
    }

    /// The one thing whose id begins so.
    static func only<Thing>(
        _ things: [Thing], idPrefix: String, _ what: String, id: (Thing) -> String
    ) throws(HandoffError) -> Thing {
        let matching = things.filter { !idPrefix.isEmpty && id($0).hasPrefix(idPrefix.lowercased()) }
        guard let first = matching.first else {
            throw HandoffError(.noSuchActivity, "no \(what) on this device has an id that begins with '\(idPrefix)'")
        }
        guard matching.count == 1 else {
            throw HandoffError(.ambiguousActivity, "\(matching.count) ids begin with '\(idPrefix)': give more of it")
        }
        return first
    }
}
