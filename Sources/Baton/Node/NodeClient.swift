// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop
package import BatonMessages
import BatonProtocol
package import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// A connection of an application, or of the command, to the node of this user: typed requests over the local socket.
///
/// Any task may use it. The node's own requests come through ``requests``.
package struct NodeClient: Sendable {
    private let connection: Connection

    /// Connects to the node of `home`.
    ///
    /// - Throws: ``NodeClientError``; `noNode` if no node listens, `notTaken` if the connection is closed before a
    ///   message.
    package static func connect(
        to home: Home, on loop: EventLoop = EventLoop(name: "node-client")
    ) async throws(NodeClientError) -> NodeClient {
        do {
            let connection = try await Connection.connect(toLocalSocket: home.socketPath, on: loop)
            try await connection.ready()
            return NodeClient(connection: connection)
        } catch {
            switch error.code {
            case .unreachable: throw .noNode(socketPath: home.socketPath)
            case .connectionLost: throw .notTaken(error)
            case .refused, .protocolViolation, .goingAway, .reset, .limitExceeded, .cancelled,
                .streamClosed, .alreadyWaiting:
                throw .notUsable(error)
            }
        }
    }

    /// Asks the node, and reads its answer.
    ///
    /// - Parameter read: returns `nil` for the answer to another question.
    private func ask<Answer>(
        _ request: WireRequest.OneOf_Kind, _ read: (WireResponse.OneOf_Kind) -> Answer?
    ) async throws(HandoffError) -> Answer {
        guard let answer = read(try await connection.answer(to: request)) else { throw .unexpectedAnswer }
        return answer
    }

    package func status() async throws(HandoffError) -> WireStatusResponse {
        try await ask(.status(WireStatusRequest())) { if case .status(let status) = $0 { status } else { nil } }
    }

    /// The node's status, and the status again whenever the responder becomes unavailable or is back. The changes end
    /// with the node.
    package func watchStatus() async throws(HandoffError) -> (
        status: WireStatusResponse, changes: RecordSequence<WireStatusResponse>
    ) {
        let (response, stream) = try await connection.request(.status(.with { $0.watch = true }))
        guard case .status(let status) = response else { throw .unexpectedAnswer }
        return (status, stream.records(of: WireStatusResponse.self))
    }

    /// The devices of the account that this node knows, and whether revocation lists were signed apart.
    package func devices() async throws(HandoffError) -> (devices: [WireDevice], listsApart: Bool) {
        let (response, stream) = try await connection.request(.devices(WireDevicesRequest()))
        await stream.finish()
        guard case .devices(let answer) = response else { throw .unexpectedAnswer }
        var devices: [WireDevice] = []
        for try await device in stream.records(of: WireDevice.self) { devices.append(device) }
        return (devices, answer.listsApart)
    }

    package func editDevices(_ change: WireEditDevicesRequest.OneOf_Change) async throws(HandoffError) {
        let request = WireEditDevicesRequest.with { $0.change = change }
        try await ask(.editDevices(request)) { if case .editDevices = $0 { () } else { nil } }
    }

    /// Hands revocation lists over: the node keeps to them from now on, and tells the other devices.
    package func adopt(_ lists: [WireSignedList]) async throws(HandoffError) {
        try await ask(.adoptState(.with { $0.lists = lists })) { if case .adoptState = $0 { () } else { nil } }
    }

    /// The activities that other devices offer.
    ///
    /// - Parameters:
    ///   - watch: continues with every later change; otherwise the records end after the present activities.
    ///   - advertisedOnly: makes no connection to ask a device for more than it advertises.
    ///   - withRefused: includes, marked, activities that this device's accept policy refuses, and those that only
    ///     applications continue for which Handoff is off. Not when watching.
    package func activities(
        watch: Bool = false, advertisedOnly: Bool = false, withRefused: Bool = false
    ) async throws(HandoffError) -> RecordSequence<WireActivityListing> {
        var request = WireActivitiesRequest()
        request.watch = watch
        request.advertisedOnly = advertisedOnly
        request.withRefused = withRefused
        let (response, stream) = try await connection.request(.activities(request))
        // A watch ends when its stream is released.
        if !watch { await stream.finish() }
        guard case .activities = response else { throw .unexpectedAnswer }
        return stream.records(of: WireActivityListing.self)
    }

    /// Offers an activity for as long as the result lives.
    package func offer(_ request: WireOfferRequest) async throws(HandoffError) -> NodeOffer {
        let (response, stream) = try await connection.request(.offer(request))
        guard case .offer(let offer) = response else { throw .unexpectedAnswer }
        return NodeOffer(id: [UInt8](offer.activityID), title: offer.title, stream: stream)
    }

    /// Withdraws one of this device's own activities, of any application.
    package func withdraw(idPrefix: String) async throws(HandoffError) -> WireWithdrawResponse {
        let request = WireWithdrawRequest.with { $0.idPrefix = idPrefix }
        return try await ask(.withdraw(request)) { if case .withdraw(let withdrawn) = $0 { withdrawn } else { nil } }
    }

    /// The activities and documents that this device offers, sends, receives and keeps, in this order.
    package func transfers() async throws(HandoffError) -> [WireTransferListing.OneOf_Kind] {
        let (response, stream) = try await connection.request(.transfers(WireTransfersRequest()))
        await stream.finish()
        guard case .transfers = response else { throw .unexpectedAnswer }
        var listings: [WireTransferListing.OneOf_Kind] = []
        for try await listing in stream.records(of: WireTransferListing.self) {
            // A later version of the node may list something else as well.
            if let kind = listing.kind { listings.append(kind) }
        }
        return listings
    }

    /// Cancels a transfer, in either direction.
    ///
    /// - Returns: the transfer as it was left.
    package func cancelTransfer(idPrefix: String) async throws(HandoffError) -> WireTransfer {
        let request = WireCancelTransferRequest.with { $0.idPrefix = idPrefix }
        return try await ask(.cancelTransfer(request)) {
            if case .cancelTransfer(let answer) = $0 { answer.transfer } else { nil }
        }
    }

    package func discardPart(idPrefix: String) async throws(HandoffError) -> WireKeptPart {
        let request = WireDiscardPartRequest.with { $0.idPrefix = idPrefix }
        return try await ask(.discardPart(request)) {
            if case .discardPart(let answer) = $0 { answer.part } else { nil }
        }
    }

    /// Examines the road to a device, which takes up to 9 s.
    package func examine(_ request: WireExamineRequest) async throws(HandoffError) -> WireExamineResponse {
        try await ask(.examine(request)) { if case .examine(let answer) = $0 { answer } else { nil } }
    }

    /// Accepts an activity.
    ///
    /// - Parameter opened: gets the stream of the request, on which the handoff goes on. Resetting it cancels the
    ///   handoff.
    package func accept(
        _ request: WireAcceptRequest, opened: (@Sendable (BatonTransport.Stream) -> Void)? = nil
    ) async throws(HandoffError) -> NodeHandoff {
        let (response, stream) = try await connection.request(.accept(request), opened: opened)
        guard case .accept(let accepted) = response else { throw .unexpectedAnswer }
        return NodeHandoff(accepted, stream: stream)
    }

    /// Whether Handoff is on, and for which applications it is off.
    ///
    /// - Parameters:
    ///   - change: switches it.
    ///   - application: for this application alone; empty: for the device.
    package func handoffSwitch(
        _ change: WireHandoffSwitchRequest.Change = .none, for application: String = ""
    ) async throws(HandoffError) -> WireHandoffSwitchResponse {
        var request = WireHandoffSwitchRequest()
        request.change = change
        request.application = application
        return try await ask(.handoffSwitch(request)) { if case .handoffSwitch(let state) = $0 { state } else { nil } }
    }

    /// Opens a stream to the application that offered the activity; bytes go both ways.
    ///
    /// - Parameters:
    ///   - id: names a handoff that was accepted with `streams`, or that the node gave to this application.
    ///   - opened: gets the stream before the other device has answered. Resetting it ends the attempt.
    package func openContinuationStream(
        ofHandoff id: [UInt8], opened: (@Sendable (BatonTransport.Stream) -> Void)? = nil
    ) async throws(HandoffError) -> BatonTransport.Stream {
        let request = WireContinuationStreamRequest.with { $0.claimID = .init(id) }
        let (response, stream) = try await connection.request(.continuationStream(request), opened: opened)
        guard case .continuationStream = response else { throw .unexpectedAnswer }
        return stream
    }

    /// Tells the node that an application runs, for as long as the result lives. A request that is sent on it replaces
    /// the description; identifier and team stay.
    package func register(_ request: WireRegisterRequest) async throws(HandoffError) -> BatonTransport.Stream {
        let (response, stream) = try await connection.request(.register(request))
        guard case .register = response else { throw .unexpectedAnswer }
        return stream
    }

    /// Asks whether this application may use a file that an activity gave it.
    ///
    /// - Throws: ``HandoffError``, `accessRefused` where it may not.
    package func access(path: [UInt8]) async throws(HandoffError) {
        try await ask(.access(.with { $0.path = .init(path) })) { if case .access = $0 { () } else { nil } }
    }

    /// The most bytes of a document that one request reads.
    package static let readBound = 16 << 20

    /// Reads bytes of the document of an activity that this application continues, all of one version. They need not
    /// have arrived yet.
    ///
    /// - Parameters:
    ///   - range: may go beyond the file's end.
    ///   - id: the handoff's id.
    ///   - path: a file, if the document is a folder; else empty.
    ///   - take: gets the bytes as they come.
    /// - Returns: the number of bytes; fewer than asked for at the file's end.
    /// - Throws: ``HandoffError``, `documentChanged` if the document has another version now; what `take` throws.
    package func readDocument(
        _ range: Range<UInt64>, ofHandoff id: [UInt8], ofFile path: [UInt8],
        _ take: (UnsafeRawBufferPointer) throws -> Void
    ) async throws -> UInt64 {
        var version = Data()
        for piece in Self.pieces(of: range) {
            var count: UInt64 = 0
            func read() async throws {
                let request = WireDocumentReadRequest.with {
                    $0.handoffID = .init(id)
                    $0.offset = piece.lowerBound + count
                    $0.length = UInt64(piece.count) - count
                    $0.path = .init(path)
                    $0.version = version
                }
                let (response, stream) = try await connection.request(.documentRead(request))
                await stream.finish()
                guard case .documentRead(let answer) = response else { throw HandoffError.unexpectedAnswer }
                version = answer.version
                var buffer = try await stream.read()
                while let read = buffer {
                    try read.withBytes(take)
                    count += UInt64(read.count)
                    buffer = try await stream.read(reusing: read)
                }
            }
            do {
                do {
                    try await read()
                } catch let error as HandoffError where error.code == .documentChanged {
                    // Another file of the folder may have changed. The node asks what there is now, and only bytes of
                    // the same version come.
                    try await read()
                }
            } catch let error as TransportError {
                throw HandoffError(error)
            }
            if count < piece.count { return piece.lowerBound + count - range.lowerBound }
        }
        return range.upperBound - range.lowerBound
    }

    /// The ranges to request, one after another. They end at chunk boundaries, so that no chunk is sent twice.
    package static func pieces(of range: Range<UInt64>) -> some Sequence<Range<UInt64>> {
        let size = UInt64(readBound)
        return sequence(state: range.lowerBound) { next in
            guard next < range.upperBound else { return nil }
            let first = next
            next = min(range.upperBound - first, size - first % size) + first
            return first..<next
        }
    }

    /// The node's requests to this application, until the connection ends. Unreadable requests are refused. Iterate it
    /// once. The connection bounds how many requests wait.
    package var requests: AsyncCompactMapSequence<IncomingStreams, NodeRequest> {
        connection.incoming.compactMap { opened in
            do throws(HandoffError) {
                return try NodeRequest(opened)
            } catch {
                await opened.stream.fail(error)
                return nil
            }
        }
    }

    package func ended() async -> TransportError {
        await connection.ended()
    }

    package func close() async {
        await connection.close()
    }
}

extension HandoffError {
    static let unexpectedAnswer = HandoffError(
        .internal, "the node answered something else than what it was asked; it may be of another version")
}

package enum NodeClientError: Error, Sendable, CustomStringConvertible {
    /// No node listens at the socket.
    case noNode(socketPath: String)
    /// The node closed the connection before it said a word, or said none in time.
    case notTaken(TransportError)
    /// Somebody listens, but does not speak as a node does, or went away.
    case notUsable(TransportError)

    package var description: String {
        switch self {
        case .noNode: "no node is running here: start one with `baton node`"
        case .notTaken(let error):
            "the node on this machine did not take the connection (\(error)): it may be stopping or suspended, or serve"
                + " as many applications and commands as it can; end some, or try again"
        case .notUsable(let error): "the node on this machine cannot be used: \(error)"
        }
    }
}
