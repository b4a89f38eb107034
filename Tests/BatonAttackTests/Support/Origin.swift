// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonDiscovery
import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import Foundation
import Logging
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonDocuments
@testable import BatonMessages
@testable import BatonNode
@testable import BatonTransport

extension ScratchFolder {
    func folder(_ name: String) throws -> URL {
        let folder = url.appendingPathComponent(name)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        return folder
    }

    func file(_ name: String, _ text: String) throws -> URL {
        URL(filePath: try write(text, to: name, mode: 0o644).string)
    }
}

extension SharedFiles {
    /// Of a device that shares no folder.
    static func none() throws -> SharedFiles {
        SharedFiles(
            path: "/nonexistent/shared-roots", on: try BlockingExecutor(name: "files"),
            logger: Logger(label: "attack") { _ in SwiftLogNoOpLogHandler() })
    }
}

/// The part of a node that serves other devices, with an activity to take: real parts, joined by a socket pair.
final class Origin: Sendable {
    static let secret = "what nobody may read without a claim"

    let offers: Offers
    let activity: OfferedActivity
    private let service: PeerService
    private let account: TestAccount
    private let loop = ControlLoop.loop
    private let scratch: ScratchFolder
    private let application: (node: Connection, program: Connection)

    /// - Parameters:
    ///   - bytes: the least size of the document, which begins with ``secret``.
    ///   - isFolder: whether the document is a folder with that in it.
    ///   - descriptions: what is in the documents of its claims takes room here; it is unbounded if nil.
    ///   - stallDeadline: how long a device may read nothing of it.
    ///   - exchange: of revocation lists; of an account that has none if nil.
    init(
        bytes: Int = 0, isFolder: Bool = false, descriptions: SharedPart? = nil,
        stallDeadline: Duration = .seconds(30), exchange: StateExchange? = nil
    ) async throws {
        scratch = try ScratchFolder("attack")
        let folder = try scratch.folder("reports")
        let file = try scratch.file("reports/report.txt", Self.secret + String(repeating: ".", count: bytes))
        var request = WireOfferRequest()
        request.supportsContinuationStreams = true
        let document = try DocumentSource(DocumentScan.scan(FilePath((isFolder ? folder : file).path)))
        activity = try OfferedActivity(request, document: document)
        offers = Offers(files: try .none()) {}
        let documents = DocumentService(
            offers: offers, pool: BufferPool(),
            ledger: try PartFileLedger(stateFolder: scratch.filePath.appending("parts")),
            limit: TransferLimit(), stallDeadline: stallDeadline, descriptions: descriptions)
        account = try TestAccount()
        service = PeerService(
            offers: offers, documents: documents, exchange: try exchange ?? Self.exchange(account.devices[0], on: loop),
            streams: ByteBudget(bytes: 4 << 20).part(reserved: 0, ceiling: 4 << 20))
        application = try await connectedPair(on: loop)
        _ = try await offers.offer(activity, from: application.node)
    }

    /// The exchange of revocation lists of a device.
    static func exchange(_ device: TestAccount.Device, on loop: EventLoop) throws -> StateExchange {
        let account = CurrentAccount(device.account)
        let logger = Logger(label: "attack") { _ in SwiftLogNoOpLogHandler() }
        let directory = PeerDirectory(
            account: account, store: device.store, replayGuard: ReplayGuard(), known: KnownDevices(),
            discovery: ServiceDiscovery(loop: loop, executor: try BlockingExecutor(name: "discovery")), logger: logger)
        return StateExchange(
            account: account, store: device.store, directory: directory, logger: logger)
    }

    /// Serves one request of a device, and returns the answer with all that followed it.
    ///
    /// - Parameters:
    ///   - device: who it is, as TLS has proved.
    ///   - pair: a connection of its own, this side's end first; a plain one if nil.
    func answer(
        to request: WireRequest.OneOf_Kind, from device: PeerName, over pair: (Connection, Connection)? = nil
    ) async throws -> (answer: WireResponse.OneOf_Kind?, data: [UInt8]) {
        let (near, far) = if let pair { pair } else { try await connectedPair(on: loop) }
        let stream = try await far.open(try WireRequest.with { $0.kind = request }.encoded())
        let incoming = try #require(await near.incoming.makeAsyncIterator().next())
        let serving = Task { await service.serve(incoming, from: device, on: near) }
        let response = try await WireResponse(serializedBytes: stream.response())
        if case .continuationStream? = response.kind {} else { await stream.finish() }
        var data: [UInt8] = []
        switch response.kind {
        case .documentRanges?, .accountState?:
            while let buffer = try await stream.read() {
                withExtendedLifetime(buffer) { data += buffer.bytes }
            }
        // A continuation stream goes on until somebody ends it.
        case _: break
        }
        await far.close()
        await serving.value
        await near.close()
        return (response.kind, data)
    }

    /// Serves one request of a device that reads nothing of what follows the answer; returns when that is over.
    func sendUnread(_ request: WireRequest.OneOf_Kind, to device: PeerName) async throws {
        var limits = Limits()
        limits.initialStreamWindow = 1 << 10
        let (near, far) = try await connectedPair(on: loop, limits: limits)
        let stream = try await far.open(try WireRequest.with { $0.kind = request }.encoded())
        let incoming = try #require(await near.incoming.makeAsyncIterator().next())
        await withTaskCancellationHandler {
            await service.serve(incoming, from: device, on: near)
        } onCancel: {
            Task { await far.close() }
        }
        withExtendedLifetime(stream) {}
        await far.close()
        await near.close()
    }

    /// The effect of a device's payload request, without a device.
    func grantClaim(to device: PeerName) async throws -> ClaimID {
        let claim = try await offers.claim(activity.id, by: device).claim
        // Ranges are served of what the manifest told.
        if let document = activity.document {
            let scanned = try DocumentScan.scan(document.path)
            await offers.decide { $0.update(claim) { $0.document = scanned } }
        }
        return claim
    }

    /// The application of the activity answers the next continuation stream.
    ///
    /// - Returns: the device that it was told of; nil when none comes before the task is cancelled.
    func answerContinuationStream() async throws -> String? {
        guard let incoming = await application.program.incoming.makeAsyncIterator().next(),
            case .continuationStream(let request) = try WireRequest.decode(incoming.request)
        else { return nil }
        try await incoming.stream.respond(.continuationStream(.init()))
        await incoming.stream.finish()
        return request.device
    }
}
