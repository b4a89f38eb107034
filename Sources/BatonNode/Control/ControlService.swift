// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import Logging
import SwiftProtobuf

/// Serves the applications and commands of this user over the local socket.
@ControlLoop
struct ControlService: Sendable {
    let account: CurrentAccount
    let listeners: PeerListeners
    let offers: Offers
    let directory: PeerDirectory
    let connections: PeerConnections
    let exchange: StateExchange
    let activities: PeerActivities
    let documents: DocumentService
    let handoffs: HandoffTable
    let policy: PolicyKeeper
    let applications: Applications
    let handoffSwitch: HandoffSwitchKeeper
    let files: SharedFiles
    let deadlines: HandoffDeadlines
    let examiner: RoadExaminer
    /// Of the node's budget, for continuation streams.
    let streams: ByteBudget.Part

    /// Serves one stream that an application opened.
    func serve(_ incoming: IncomingStream, of application: Connection) async {
        let stream = incoming.stream
        do {
            // The message of an offer takes ten times as much memory as what is kept of it, so it goes before the wait.
            guard let activity = try await answer(incoming, of: application) else { return }
            try await offer(activity, from: application, on: stream)
        } catch let error as HandoffError {
            await stream.fail(error)
        } catch {
            await stream.fail(HandoffError(.internal, "\(error)"))
        }
    }

    /// Answers a request.
    ///
    /// - Returns: the activity, of a request that offers one: that is answered when the request has gone.
    private func answer(
        _ incoming: IncomingStream, of application: Connection
    ) async throws -> OfferedActivity? {
        let stream = incoming.stream
        let request = try await incoming.decoded()
        if !request.hasInput { stream.ignoreInput() }
        let response: WireResponse.OneOf_Kind
        switch request {
        case .status(let request):
            try await status(request, on: stream)
            return nil
        case .devices:
            try await devices(on: stream)
            return nil
        case .activities(let request):
            try await activities(request, on: stream)
            return nil
        case .offer(let request):
            // Before a document is looked at, which can take longer than the node is there.
            if let failure = offers.decide({ $0.stopped }) { throw failure }
            let (request, document) = try await outgoing(request)
            return try OfferedActivity(request, document: document)
        case .accept(let request):
            try await accept(request, on: stream)
            return nil
        case .continuationStream(let request):
            try await offLoop { try await continuationStream(request, from: application, on: stream) }
            return nil
        case .register(let request):
            try await register(request, from: application, on: stream)
            return nil
        case .documentRead(let request):
            try await offLoop { try await documentRead(request, on: stream) }
            return nil
        case .transfers:
            try await transfers(on: stream)
            return nil
        case .withdraw(let request): response = try .withdraw(withdraw(request))
        case .handoffSwitch(let request): response = try await .handoffSwitch(handoffSwitch(request))
        case .access(let request):
            try await requireAccess(request, by: application)
            response = .access(.init())
        case .cancelTransfer(let request): response = try await .cancelTransfer(cancelTransfer(request))
        case .discardPart(let request): response = try await .discardPart(discardPart(request))
        case .adoptState(let request):
            try await exchange.adopt(request.lists, wrappedBy: account.value.identity.localWrappingKey)
            response = .adoptState(.init())
        case .editDevices(let request):
            try await edit(request)
            response = .editDevices(.init())
        case .examine(let request): response = .examine(await examiner.examine(request))
        case .activityList, .payload, .documentManifest, .documentRanges, .continued, .release, .accountState,
            .examination, .willSave, .willContinue, .continueActivity, .didFail:
            throw HandoffError(.unsupported, "this request is not for the local socket")
        }
        try await stream.respond(response)
        await stream.finish()
        return nil
    }

    private func status(
        _ request: WireStatusRequest, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        let changes = request.watch ? try directory.watch(.responder) : nil
        try await stream.respond(.status(await currentStatus()))
        guard let changes else { return await stream.finish() }
        await untilEnded(stream) {
            for await _ in changes { try await stream.send(record: await currentStatus()) }
        }
    }

    /// Does something until the application, which sends nothing more, ends its side of the stream or its connection.
    private func untilEnded(
        _ stream: BatonTransport.Stream, _ work: @escaping @ControlLoop () async throws -> Void
    ) async {
        do {
            async let _: Void = work()
            while (try? await stream.read()) != nil {}
        }
        await stream.finish()
    }

    private func currentStatus() async -> WireStatusResponse {
        var status = WireStatusResponse()
        status.device = account.value.deviceName
        status.deviceID = account.value.identity.id.description
        status.port = UInt32(listeners.port)
        let responder = directory.responder
        (status.responder, status.isUnannounced) = (responder.inWords, responder.isUnavailable)
        status.peers = UInt32(directory.present.count)
        status.offers = UInt32(offers.visible.count)
        status.connections = UInt32(connections.count)
        let handoffSwitch = handoffSwitch.current
        status.handoffIsOff = !handoffSwitch.isOn
        status.handoffProblem = handoffSwitch.problem ?? ""
        let problem = try? await withDeadline(DocumentService.sharedFolderDeadline, SharedFiles.silence) { [files] in
            await files.currentProblem ?? ""
        }
        status.sharedRootsProblem = problem ?? SharedFiles.silence
        status.applications = UInt32(applications.count)
        status.policyProblem = await policy.currentProblem() ?? ""
        status.hasTwin_p = directory.hasTwin
        status.portIsFixed = listeners.isFixed
        status.lacksDescriptors = DescriptorLimit.isNearlyReached
        status.processID = UInt32(ProcessInfo.processInfo.processIdentifier)
        return status
    }

    private func devices(on stream: BatonTransport.Stream) async throws(HandoffError) {
        let current = account.value
        try await stream.respond(.devices(.with { $0.listsApart = current.state.isApart }))
        for peer in directory.all {
            // The user asks who there is: what is only announced is met, and is shown as what it is the next time.
            if peer.isPresent, !peer.isProved { exchange.inform(peer.device.description) }
            try await stream.send(
                record: WireDevice.with {
                    $0.name = peer.name
                    $0.deviceID = peer.device.description
                    $0.addresses = peer.addresses.map(\.description)
                    $0.seen = peer.seen
                    $0.knows = peer.knows(current)
                    $0.present = peer.isPresent
                    $0.proved = peer.isProved
                    $0.formerNames = peer.formerNames.other(than: peer.name)
                })
        }
        await stream.finish()
    }

    private func edit(_ request: WireEditDevicesRequest) async throws(HandoffError) {
        switch request.change {
        case .name(let name): try await exchange.rename(to: name)
        case .forget(let device):
            try directory.forget(device)
            exchange.forget(device)
        case nil: throw HandoffError(.invalidRequest, "the request changes nothing")
        }
    }

    private func activities(
        _ request: WireActivitiesRequest, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        if !request.watch { try handoffSwitch.current.requireOn() }
        let changes = request.watch ? try directory.watch() : nil
        try await stream.respond(.activities(.init()))
        let purpose: PeerActivities.Purpose =
            request.advertisedOnly ? .advertised : request.watch ? .watch : .look
        let listed = await activities.all(for: purpose, withRefused: request.withRefused && !request.watch)
        for listing in listed { try await stream.send(record: listing) }
        guard let changes else { return await stream.finish() }

        try await stream.send(record: WireActivityListing.with { $0.change = .listed })
        await untilEnded(stream) { [listed] in
            var told = ToldListing(listed)
            for await _ in changes {
                let present = await activities.all(for: purpose)
                for change in told.change(to: present) { try await stream.send(record: WireActivityListing(change)) }
            }
        }
    }
}
