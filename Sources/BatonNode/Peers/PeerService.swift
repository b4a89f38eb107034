// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// Serves what the account's other devices ask of this one: the origin's side of every handoff.
///
/// Everything is pull: nothing leaves this device that the other side has not asked for, and documents, streams and
/// *continued* need a claim.
@ControlLoop
struct PeerService: Sendable {
    let offers: Offers
    let documents: DocumentService
    let exchange: StateExchange
    /// Of the node's budget, for continuation streams.
    let streams: ByteBudget.Part
    /// How long an application may take to answer whether it takes a continuation stream.
    nonisolated let streamDeadline: Duration
    /// `nil` if this node does not examine the road to other devices.
    let examinations: Examinations?

    nonisolated init(
        offers: Offers, documents: DocumentService, exchange: StateExchange, streams: ByteBudget.Part,
        streamDeadline: Duration = .seconds(5), examinations: Examinations? = nil
    ) {
        self.offers = offers
        self.documents = documents
        self.exchange = exchange
        self.streams = streams
        self.streamDeadline = streamDeadline
        self.examinations = examinations
    }

    /// Serves one stream to its end. Meant for the task executor of the node's control loop, where almost everything
    /// lives that an answer comes from; what computes more leaves it.
    func serve(_ incoming: IncomingStream, from device: PeerName, on connection: Connection) async {
        let stream = incoming.stream
        do {
            let request = try await incoming.decoded()
            if !request.hasInput { stream.ignoreInput() }
            try requireServed(request)
            switch request {
            // A claim that could not be released would last for as long as its connection.
            case .accountState, .release: break
            case _: try await exchange.requireCurrent(device.id)
            }
            switch request {
            case .accountState(let request):
                try await exchange.serve(request, to: device.id, on: stream, of: connection)
            case .activityList:
                try await list(on: stream)
            case .payload(let request):
                try await payload(request, from: device, on: stream)
            case .documentManifest(let request):
                let claim = try claimID(request.claimID)
                try await offLoop { try await documents.manifest(of: claim, for: device, on: stream) }
            case .documentRanges(let request):
                let claim = try claimID(request.claimID)
                try await offLoop { try await documents.send(request, of: claim, to: device, on: stream) }
            case .continuationStream(let request):
                try await offLoop { try await continuationStream(request, from: device, on: stream) }
            case .continued(let request):
                try await continued(request, from: device, on: stream)
            case .release(let request):
                let claim = try claimID(request.claimID)
                let reason = request.hasFailure ? HandoffError(request.failure).shortened : nil
                offers.decide { $0.release(claim, by: device, because: reason) }
                try await stream.respond(.release(.init()))
                await stream.finish()
            case .examination(let request):
                guard let examinations else { throw HandoffError(.unsupported, "this node examines no road") }
                let answer = try await examinations.answer(
                    request, from: device.id, at: connection.remoteAddress.ipAddress)
                try await stream.respond(.examination(answer))
                await stream.finish()
            // Refused above.
            case _: break
            }
        } catch {
            let failure = HandoffError(wrapping: error)
            // A document that cannot be described is called by its title already.
            await stream.fail(failure.code == .documentUnreadable ? failure : failure.withoutPlaces)
        }
    }

    /// Refuses what no device is served, before anything waits: such a request may take many times what it took to
    /// send.
    private func requireServed(_ request: WireRequest.OneOf_Kind) throws(HandoffError) {
        switch request {
        case .documentRanges(let request) where request.ranges.count > DocumentWriter.rangeLimit:
            throw HandoffError(.invalidRequest, "1 to \(DocumentWriter.rangeLimit) ranges can be asked for at once")
        case .accountState, .activityList, .payload, .documentManifest, .documentRanges, .continuationStream,
            .continued, .release, .examination:
            break
        default: throw HandoffError(.unsupported, "this request is for the local socket only")
        }
    }

    private func claimID(_ bytes: Data) throws(HandoffError) -> ClaimID {
        guard let id = ClaimID(bytes) else {
            throw HandoffError(.invalidRequest, "a claim has \(ClaimID.size) bytes")
        }
        return id
    }

    private func list(on stream: BatonTransport.Stream) async throws(HandoffError) {
        await offers.replaced()
        try await stream.answer(.activityList(.init()), following: offers.visible.reversed().map(\.summary))
    }

    private func payload(
        _ request: WirePayloadRequest, from device: PeerName, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        guard let id = ActivityID(request.activityID) else {
            throw HandoffError(.invalidRequest, "an activity's id has \(ActivityID.size) bytes")
        }
        try await Self.give(id, to: device, on: stream, of: offers)
    }

    /// Gives a device the activity as it is now. A device that goes before the answer loses its claim at once.
    static func give(
        _ id: ActivityID, to device: PeerName, on stream: BatonTransport.Stream, of offers: Offers
    ) async throws(HandoffError) {
        let claim = ClaimID()
        let payload: WireActivityPayload
        do {
            async let _: Void = release(claim, of: offers, by: device, whenGone: stream)
            payload = try await offers.claim(id, by: device, as: claim).payload
        }
        try await answer(claim, payload, on: stream, for: device, of: offers)
    }

    private static func release(
        _ claim: ClaimID, of offers: Offers, by device: PeerName, whenGone stream: BatonTransport.Stream
    ) async {
        await stream.untilClosedOrCancelled()
        guard !Task.isCancelled else { return }
        var reason = HandoffError(.connectionLost, "the connection ended")
        do throws(TransportError) { _ = try await stream.read() } catch { reason = HandoffError(error) }
        offers.decide { [reason] in $0.release(claim, by: device, because: loss(reason)) }
    }

    /// Gives a device the activity that it has claimed. A claim that it does not come to know of goes again.
    static func answer(
        _ claim: ClaimID, _ payload: WireActivityPayload, on stream: BatonTransport.Stream, for device: PeerName,
        of offers: Offers
    ) async throws(HandoffError) {
        do {
            try await stream.respond(
                .payload(
                    .with {
                        $0.payload = payload
                        $0.claimID = Data(claim.bytes)
                    }))
        } catch {
            offers.decide { $0.release(claim, by: device, because: loss(error)) }
            throw error
        }
        await stream.finish()
        do {
            _ = try await stream.read()
        } catch {
            // A device that no longer waited for the answer aborts instead of ending: nobody knows of the claim.
            if case .reset = error.code {
                offers.decide { $0.release(claim, by: device, because: loss(HandoffError(error))) }
            }
        }
    }

    /// Why a device did not take an answer; `nil` where its user has cancelled, which is told apart from all else.
    private nonisolated static func loss(_ error: HandoffError) -> HandoffError? {
        switch error.code {
        case .cancelled: nil
        case .timedOut: HandoffError(.timedOut, "the device had waited for too long when the activity was there")
        case _: HandoffError(.connectionLost, "the device was lost before it had the activity")
        }
    }

    private func continuationStream(
        _ request: WireContinuationStreamRequest, from device: PeerName, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        let id = try claimID(request.claimID)
        let claim = try offers.decide { $0.present(id, by: device) }.get()
        let application = try offers.application(of: claim)
        let late = "the application that offers it did not answer"
        let (_, toApplication) = try await withDeadline(streamDeadline, late) {
            try await application.request(
                .continuationStream(
                    .with {
                        $0.activityID = Data(claim.kept.activity.id.bytes)
                        $0.device = device.name
                        $0.deviceID = device.id
                    }))
        }
        try await stream.respond(.continuationStream(.init()))
        await splice(stream, toApplication, within: streams)
    }

    private func continued(
        _ request: WireContinuedRequest, from device: PeerName, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        let claim = try claimID(request.claimID)
        try offers.decide { $0.setContinued(claim, by: device) }.get()
        try await stream.respond(.continued(.init()))
        await stream.finish()
    }
}
