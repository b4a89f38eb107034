// SPDX-License-Identifier: Apache-2.0

package import BatonMessages
package import BatonProtocol
package import BatonTransport
package import FoundationEssentials
import SwiftProtobuf

/// A scripted node that treats applications as a real one does, remembers what they said, and asks what the test wants.
package actor ApplicationNode {
    /// An activity that an application offered.
    package struct Offer: Sendable {
        package let request: WireOfferRequest
        package var updates: [WireOfferUpdate] = []
        /// The application has withdrawn it, or is gone.
        package var hasEnded = false
        /// Devices that are taking it over: until they have, its events go on.
        fileprivate var taking: Set<String> = []
        fileprivate let stream: BatonTransport.Stream

        /// As it was said last.
        package var latest: WireOfferRequest { updates.last?.offer ?? request }
    }

    /// The registrations of applications, in order.
    package private(set) var registrations: [WireRegisterRequest] = []
    /// How many registrations have ended.
    package private(set) var departures = 0
    package private(set) var offers: [Offer] = []
    /// Streams that a continuing application opened, accepted.
    package private(set) var streams: [BatonTransport.Stream] = []
    /// Files that an application asked for.
    package private(set) var accessed: [String] = []
    /// The content that answers a document read.
    private var document = Data()
    /// The content after something of it was read.
    private var lostOrigin: (@Sendable () async -> Void)?
    private var nextDocument: Data?
    /// Another one for each content.
    private var documentVersion: UInt8 = 0
    private var refusals: [HandoffError] = []
    private var reason: @Sendable (WireOfferRequest) -> HandoffError? = { _ in nil }
    /// Offers that were refused for ``refuse(where:)``.
    package private(set) var refusedOffers: [WireOfferRequest] = []
    private var held: [CheckedContinuation<Void, Never>]?
    private var registrationRefusal: HandoffError?
    /// How often an application was refused to register.
    package private(set) var refusedRegistrations = 0
    private var connection: Connection?
    private var script: ScriptedNode?

    /// - Parameter folder: its `BATON_HOME`; one of its own by default.
    package init(in folder: String? = nil) async throws {
        script = try ScriptedNode(in: folder) { [weak self] request, stream, connection in
            try await self?.serve(request, stream, connection)
        }
    }

    package nonisolated static func start(in folder: String? = nil) async throws -> (node: ApplicationNode, home: Home)
    {
        let node = try await ApplicationNode(in: folder)
        guard let home = await node.script?.home else { throw HandoffError(.internal, "the node has no home") }
        return (node, home)
    }

    /// Ends as a node that was killed.
    package func stop() async {
        await script?.stop()
        script = nil
        connection = nil
    }

    /// The next requests that applications make, save to register, are refused so.
    package func refuse(_ errors: HandoffError...) { refusals = errors }

    /// Refuses to register applications; `nil` takes them again.
    package func refuseRegistrations(_ error: HandoffError?) { registrationRefusal = error }

    /// Closes the connection of the application that spoke last, and says why.
    package func close(_ code: ApplicationErrorCode) async { await connection?.close(code) }

    /// The document of every activity, as far as this application can read it.
    ///
    /// - Parameter next: what it becomes as soon as something of it was read.
    package func setDocument(_ content: Data, then next: Data? = nil) {
        document = content
        nextDocument = next
        documentVersion += 1
    }

    /// Loses the origin of every document: each read fails.
    ///
    /// - Parameter hold: is waited for before a read fails.
    package func loseOrigin(after hold: @escaping @Sendable () async -> Void) { lostOrigin = hold }

    /// Activities that are offered now.
    package var offered: [Offer] { offers.filter { !$0.hasEnded } }

    /// Asks the application, and gives its answer and the stream that the question went over.
    package func ask(
        _ request: WireRequest.OneOf_Kind
    ) async throws(HandoffError) -> (answer: WireResponse.OneOf_Kind, stream: BatonTransport.Stream) {
        guard let connection else { throw HandoffError(.applicationGone, "no application is connected") }
        return try await connection.request(request)
    }

    /// Tells the application what became of the activity that it offered last, or of another one.
    package func report(_ event: WireOfferEvent.OneOf_Kind, of number: Int? = nil) async throws {
        let index = number ?? offers.count - 1
        guard offers.indices.contains(index) else { return }
        switch event {
        case .taken(let device): offers[index].taking.insert(device.deviceID)
        case .continued(let device): offers[index].taking.remove(device.deviceID)
        case .progress, .failed, .interrupted, .withdrawn: break
        }
        try await offers[index].stream.send(record: WireOfferEvent.with { $0.kind = event })
        if offers[index].hasEnded, offers[index].taking.isEmpty { await offers[index].stream.finish() }
    }

    /// Ends the last offer from this side, as `baton withdraw` does.
    package func withdraw() async throws {
        try await end(offers.count - 1)
    }

    /// Ends the last offer because something is wrong with its update.
    package func refuseUpdate(_ error: HandoffError) async throws {
        try await report(.failed(error.failure))
        try await end(offers.count - 1)
    }

    /// The reason why an offer or an update is refused; nil if it is accepted. Everything by default.
    package func refuse(where reason: @escaping @Sendable (WireOfferRequest) -> HandoffError?) { self.reason = reason }

    /// Lets the ends of offers wait, as a node does that is still busy with an update.
    package func holdEnds() { held = [] }

    /// How many ends wait.
    package var heldEnds: Int { held?.count ?? 0 }

    /// Lets them go, and those after them.
    package func releaseEnds() {
        for end in held ?? [] { end.resume() }
        held = nil
    }

    /// However an offer ends, the application is told that it has.
    private func end(_ index: Int) async throws {
        if held != nil { await withCheckedContinuation { held?.append($0) } }
        guard offers.indices.contains(index), !offers[index].hasEnded else { return }
        offers[index].hasEnded = true
        try await offers[index].stream.send(record: WireOfferEvent.with { $0.withdrawn = .init() })
        if offers[index].taking.isEmpty { await offers[index].stream.finish() }
    }

    private func serve(
        _ request: WireRequest.OneOf_Kind, _ stream: BatonTransport.Stream, _ connection: Connection
    ) async throws {
        self.connection = connection
        if case .register(let request) = request { return try await register(request, stream) }
        if !refusals.isEmpty { throw refusals.removeFirst() }
        switch request {
        case .offer(let request): try await offer(request, stream)
        case .continuationStream:
            try await stream.respond(.continuationStream(.init()))
            streams.append(stream)
        case .access(let request):
            accessed.append(String(decoding: request.path, as: UTF8.self))
            try await stream.respond(.access(.init()))
            await stream.finish()
        case .documentRead(let request):
            if let lostOrigin {
                await lostOrigin()
                throw HandoffError(.connectionLost, "the connection to the other device was lost")
            }
            let version = Data(repeating: documentVersion, count: 16)
            guard request.version.isEmpty || request.version == version else {
                return await stream.fail(HandoffError(.documentChanged, "it has changed"))
            }
            let document = document
            if let nextDocument { setDocument(nextDocument) }
            try await stream.respond(.documentRead(.with { $0.version = version }))
            let bytes = document.dropFirst(Int(request.offset)).prefix(Int(request.length))
            if !bytes.isEmpty { try await stream.write(Buffer(copying: bytes)) }
            await stream.finish()
        default: throw HandoffError(.unsupported, "not in this script")
        }
    }

    private func register(_ request: WireRegisterRequest, _ stream: BatonTransport.Stream) async throws {
        if let registrationRefusal {
            refusedRegistrations += 1
            throw registrationRefusal
        }
        registrations.append(request)
        try await stream.respond(.register(.init()))
        defer { departures += 1 }
        for try await record in stream.records(of: WireRegisterRequest.self) { registrations.append(record) }
        await stream.finish()
    }

    private func offer(_ request: WireOfferRequest, _ stream: BatonTransport.Stream) async throws {
        let isOffered = offers.contains { !$0.hasEnded && $0.request.activityID == request.activityID }
        guard request.activityID.isEmpty || !isOffered else {
            throw HandoffError(.invalidRequest, "an activity with this id is offered already")
        }
        if let error = reason(request) {
            refusedOffers.append(request)
            throw error
        }
        let index = offers.count
        offers.append(Offer(request: request, stream: stream))
        // Its connection may just end.
        defer { offers[index].hasEnded = true }
        try await stream.respond(
            .offer(
                .with {
                    $0.activityID = request.activityID
                    $0.title = request.title
                }))
        for try await update in stream.records(of: WireOfferUpdate.self) {
            offers[index].updates.append(update)
            guard let error = reason(update.offer) else { continue }
            try await stream.send(record: WireOfferEvent.with { $0.failed = error.failure })
            break
        }
        try await end(index)
    }
}
