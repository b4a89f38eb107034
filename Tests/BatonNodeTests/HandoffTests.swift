// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTestSupport
import BatonTransport
import FoundationEssentials
import SwiftProtobuf
import Testing

import struct SystemPackage.FilePath

@testable import BatonNode

/// One handoff, and an origin that the test plays.
@Suite("A handoff", .timeLimit(.minutes(5)))
struct HandoffTests {
    private let parts: NodeParts
    private let origin: PeerName

    init() throws {
        parts = try NodeParts(TestAccount(devices: 2))
        origin = PeerName(id: parts.account.devices[1].id.description, name: "laptop")
    }

    private static func note(_ number: UInt8) -> WireActivitySummary {
        .with {
            $0.id = Data(repeating: number, count: ActivityID.size)
            $0.kind = .application
            $0.type = "org.example.note"
        }
    }

    private static func payload(_ summary: WireActivitySummary) -> WireResponse.OneOf_Kind {
        .payload(
            .with {
                $0.claimID = Data(repeating: 7, count: 16)
                $0.payload.summary = summary
            })
    }

    private static func rules(_ lines: [String]) throws -> [AcceptPolicy.Rule] {
        try AcceptPolicy(parsing: Array(lines.joined(separator: "\n").utf8)).rules
    }

    /// Answers what the handoff asks on a connection.
    private func serve(
        _ connection: Connection,
        _ answer: @escaping @Sendable (WireRequest.OneOf_Kind, BatonTransport.Stream) async throws -> Void
    ) {
        Task {
            for await incoming in connection.incoming {
                try? await answer(try WireRequest.decode(incoming.request), incoming.stream)
            }
        }
    }

    @Test("Of its events so many wait for an application that does not read, and the oldest go first")
    func events() async {
        for (emitted, first) in [(Handoff.eventBound, 0), (Handoff.eventBound + 1, 1)] {
            let handoff = parts.handoff()
            for number in 0..<emitted { handoff.send(.interrupted(.with { $0.keptBytes = UInt64(number) })) }
            await handoff.endEvents()
            let numbers = await handoff.events.reduce(into: []) { $0.append($1.interrupted.keptBytes) }
            #expect(numbers == (UInt64(first)..<UInt64(emitted)).map { $0 })
        }
    }

    @Test("An origin that does not send the activity is waited for so long, and hears that it was too late")
    func silence() async throws {
        let (near, far) = try await connectedPair(on: parts.loop)
        try await parts.connections.adopt(near, of: origin.id, isDialled: false)
        let (endings, ending) = AsyncStream<TransportError.Code?>.makeStream()
        serve(far) { _, stream in
            do throws(TransportError) {
                _ = try await stream.read()
                ending.yield(nil)
            } catch {
                ending.yield(error.code)
            }
        }
        var deadlines = HandoffDeadlines()
        deadlines.payload = .milliseconds(200)
        let handoff = parts.handoff(
            Handoff.Plan(activity: Self.note(0), origin: origin, candidates: [], destination: nil), deadlines: deadlines
        )
        let error = await #expect(throws: HandoffError.self) { try await handoff.fetchAcceptedPayload() }
        #expect(error?.code == .timedOut && error?.device == "laptop")
        let heard = await endings.first { _ in true }
        #expect(heard == .reset(.timeout))
        await near.close()
        await far.close()
    }

    @Test("A handoff that replaces its claim in two tasks at once holds one connection, and none in the end")
    func holds() async throws {
        var limits = NodeLimits()
        limits.links.idleLife = .seconds(2)
        let parts = try NodeParts(TestAccount(devices: 2), limits: limits)
        let origin = PeerName(id: parts.account.devices[1].id.description, name: "laptop")
        for round in 0..<5 {
            let (old, oldFar) = try await connectedPair(on: parts.loop)
            try await parts.connections.adopt(old, of: origin.id, isDialled: false)
            let answer: @Sendable (WireRequest.OneOf_Kind, BatonTransport.Stream) async throws -> Void = {
                request, stream in
                switch request {
                case .payload: try await stream.respond(Self.payload(Self.note(0)))
                case .release: try await stream.respond(.release(.init()))
                default: Issue.record("it asked for something else: \(request)")
                }
                await stream.finish()
            }
            serve(oldFar, answer)
            let handoff = parts.handoff(
                Handoff.Plan(activity: Self.note(0), origin: origin, candidates: [], destination: nil))
            _ = try await handoff.fetchAcceptedPayload()
            await old.abort()
            let (new, newFar) = try await connectedPair(on: parts.loop)
            try await parts.connections.adopt(new, of: origin.id, isDialled: false)
            serve(newFar, answer)
            // One asks for the activity again, others present the claim: each moves to the new connection.
            await withTaskGroup { group in
                group.addTask { _ = try? await handoff.fetchPayload(from: new) }
                for _ in 0..<8 { group.addTask { _ = try? await handoff.presentClaim() } }
            }
            _ = await handoff.perform(.release(because: nil))
            // A connection that something holds is never idle.
            try await eventually("it is closed as idle, in round \(round)", within: .seconds(20)) { !new.isOpen }
            await newFar.close()
            await oldFar.close()
        }
    }

    /// A handoff of an empty document, whose origin says nothing to *continued* for as long as the test wants.
    private final class Silent: Sendable {
        let handoff: Handoff
        let table = HandoffTable()
        let place: FilePath
        let ends: [Connection]
        private let heard = Lock((answered: [String](), isTold: false))
        private let patience: AsyncStream<Void>.Continuation

        /// The answers of the origin.
        var answered: [String] { heard.withLock { $0.answered } }

        init(_ suite: HandoffTests, answer deadline: Duration) async throws {
            let inbox = suite.parts.account.root.appending("inbox")
            try FileManager.default.createDirectory(atPath: inbox.string, withIntermediateDirectories: true)
            place = inbox.appending("empty")
            let (near, far) = try await connectedPair(on: suite.parts.loop)
            ends = [near, far]
            try await suite.parts.connections.adopt(near, of: suite.origin.id, isDialled: false)
            let (waiting, patience) = AsyncStream<Void>.makeStream()
            self.patience = patience
            let summary = WireActivitySummary.with {
                $0.id = Data(repeating: 1, count: ActivityID.size)
                $0.kind = .document
                $0.type = "public.data"
                $0.title = "empty"
            }
            let plan = Handoff.Plan(
                activity: summary, origin: suite.origin, candidates: [],
                destination: try DestinationFolder(inbox))
            var deadlines = HandoffDeadlines()
            deadlines.answer = deadline
            handoff = suite.parts.handoff(plan, deadlines: deadlines)
            suite.serve(far) { [self] request, stream in
                switch request {
                case .payload: try await stream.respond(HandoffTests.payload(summary))
                case .documentManifest:
                    try await stream.respond(.documentManifest(.with { $0.entries = 1 }))
                    try await stream.send(record: WireDocumentEntry.with { $0.name = Data("empty".utf8) })
                case .continued:
                    // Others are answered meanwhile.
                    Task { [self] in
                        for await _ in waiting {}
                        heard.withLock { $0.answered.append("continued") }
                        try? await stream.respond(.continued(.init()))
                        await stream.finish()
                    }
                    return
                case .activityList: try await stream.respond(.activityList(.init()))
                case .release(let release):
                    heard.withLock { $0.answered.append(release.hasFailure ? "failed" : "released") }
                    try await stream.respond(.release(.init()))
                default: Issue.record("it asked for something else: \(request)")
                }
                await stream.finish()
            }
        }

        /// Runs it until whoever asked is told that it is continued.
        ///
        /// - Returns: a task that ends with the handoff.
        func start() async throws -> Task<Void, Never> {
            try await table.insert(handoff)
            await table.begin(handoff)
            let running = Task {
                for await event in handoff.events {
                    if case .continued = event.kind { heard.withLock { $0.isTold = true } }
                    if case .failed(let failure) = event.kind { Issue.record("\(failure)") }
                }
            }
            try await eventually("it is told that it is continued", within: .seconds(60)) {
                heard.withLock { $0.isTold }
            }
            #expect(FileManager.default.fileExists(atPath: place.string))
            return running
        }

        /// Waits until the origin has answered all that was asked before.
        func roundTrip() async throws {
            _ = try await ends[0].answer(to: .activityList(.init()))
        }

        /// The origin answers from now on.
        func answer() { patience.finish() }

        func close() async {
            answer()
            for end in ends { await end.close() }
        }
    }

    @Test("A document that is in place is continued at once, and its origin hears so whoever cancels then")
    func inPlace() async throws {
        let silent = try await Silent(self, answer: .seconds(240))
        defer { silent.answer() }
        let running = try await silent.start()
        // As for an abort by whoever asked.
        await silent.table.cancel(silent.handoff)
        for _ in 0..<20 { try await silent.roundTrip() }
        #expect(silent.answered == [])
        silent.answer()
        await running.value
        #expect(silent.answered == ["continued", "released"])
        await silent.close()
    }

    @Test("An origin that does not hear that it is continued is waited for so long")
    func unheard() async throws {
        // For the answer to *continued*, and then for that to the release.
        let silent = try await Silent(self, answer: .seconds(2))
        defer { silent.answer() }
        let start = ContinuousClock.now
        try await silent.start().value
        #expect(ContinuousClock.now - start >= .seconds(2))
        try await eventually("it is let go") { silent.answered == ["released"] }
        await silent.close()
    }

    @Test("A user who accepts it again before its origin has heard of it is given the document in place")
    func inPlaceAgain() async throws {
        let silent = try await Silent(self, answer: .seconds(240))
        defer { silent.answer() }
        _ = try await silent.start()
        await silent.table.setDetached(silent.handoff)
        async let continued = silent.table.endDetached(like: silent.handoff.plan)
        for _ in 0..<20 { try await silent.roundTrip() }
        #expect(silent.answered == [])
        silent.answer()
        #expect(await continued?.path == Data(silent.place.string.utf8))
        #expect(silent.answered == ["continued", "released"])
        await silent.close()
    }

    @Test("The network that a rule names is the one of every connection, the first and each later one")
    func network() async throws {
        let (accepted, accept) = AsyncStream<Socket>.makeStream()
        let listener = try Listener(at: .ip(.ipv4Any, port: 0), on: EventLoop(name: "origin"))
        listener.start { accept.yield($0) }
        defer { listener.close() }
        var sockets = accepted.makeAsyncIterator()
        let asked = Lock<[String]>([])
        let offered = Lock(Self.note(0))
        /// The origin is reached at an address of the loopback, and by no other connection any more.
        func connect(_ last: Connection?, _ host: String) async throws -> Connection {
            await last?.abort()
            let socket = try await Socket.connect(
                to: .ip(try #require(IPAddress(host)), port: try #require(listener.localAddress.port)), on: parts.loop)
            let near = Connection(
                socket: socket, channel: PlainChannel(peer: .localUser(0)), role: .dialer, on: parts.loop)
            let other = try #require(await sockets.next())
            let far = Connection(
                socket: other, channel: PlainChannel(peer: .localUser(0)), role: .acceptor, on: other.loop)
            for connection in [near, far] { await connection.start() }
            try await near.ready()
            serve(far) { request, stream in
                guard case .payload = request else {
                    Issue.record("it asked for something else: \(request)")
                    return
                }
                asked.withLock { $0.append(host) }
                try await stream.respond(Self.payload(offered.withLock { $0 }))
                await stream.finish()
            }
            try await parts.connections.adopt(near, of: origin.id, isDialled: false)
            return near
        }
        /// - Parameter ruled: whether the rule that accepts took it over; the user did where not.
        func handoff(_ lines: [String], ruled: Bool) throws -> Handoff {
            let rules = try Self.rules(lines)
            var plan = Handoff.Plan(activity: Self.note(0), origin: origin, candidates: rules, destination: nil)
            if ruled { plan.rule = rules.first { $0.action == .accept } }
            return parts.handoff(plan)
        }
        func handoff(_ network: String) throws -> Handoff {
            try handoff(["accept network=\(network) to=/scans"], ruled: true)
        }
        let first = try await connect(nil, "127.0.0.1")
        for network in ["127.0.0.2", "127.1.0.0/16", "no-such-network"] {
            let other = try handoff(network)
            let error = await #expect(throws: HandoffError.self) { try await other.fetchAcceptedPayload() }
            #expect(error?.code == .refused, "\(network): \(String(describing: error))")
        }
        // An earlier rule that is about the network decides, whoever accepted; what was announced was another network.
        let refused = ["refuse network=127.0.0.0/8", "accept to=/scans"]
        for ruled in [true, false] {
            let other = try handoff(refused, ruled: ruled)
            let error = await #expect(throws: HandoffError.self) { try await other.fetchAcceptedPayload() }
            #expect(
                error?.code == .refused && error?.message.contains("Line 1") == true, "\(String(describing: error))")
        }
        // So does the size, of what is announced and of what there is: 0 bytes here.
        let unsized = try handoff(["refuse max=1KB", "accept to=/scans"], ruled: false)
        let tooSmall = await #expect(throws: HandoffError.self) { try await unsized.fetchAcceptedPayload() }
        #expect(tooSmall?.code == .refused && tooSmall?.message.contains("Line 1") == true)
        let small = try Self.rules(["accept max=1KB to=/scans"])
        var plan = Handoff.Plan(activity: Self.note(0), origin: origin, candidates: small, destination: nil)
        plan.rule = small.first
        let grown = #expect(throws: HandoffError.self) { try plan.requirePolicy(over: first, size: 2000) }
        #expect(grown?.message.contains("more than the rule in line 1 accepts") == true, "\(String(describing: grown))")
        let asking = try handoff(["ask network=lo", "accept to=/scans"], ruled: true)
        let unruled = await #expect(throws: HandoffError.self) { try await asking.fetchAcceptedPayload() }
        #expect(unruled?.code == .refused, "\(String(describing: unruled))")
        #expect(asked.withLock { $0 } == [])
        for network in ["127.0.0.1", "lo"] { _ = try await handoff(network).fetchAcceptedPayload() }
        // What is sent may be larger than what was announced.
        offered.withLock { $0.documentSize = 5000 }
        let announced = try handoff(["ask max=1KB", "refuse"], ruled: false)
        let larger = await #expect(throws: HandoffError.self) { try await announced.fetchAcceptedPayload() }
        #expect(larger?.code == .refused && larger?.message.contains("Line 2") == true, "\(String(describing: larger))")
        offered.withLock { $0.documentSize = 0 }
        let handoff = try handoff("127.0.0.0/31")
        _ = try await handoff.fetchAcceptedPayload()
        #expect(asked.withLock { $0 } == Array(repeating: "127.0.0.1", count: 4))
        #expect(try await handoff.presentClaim().0 === first)
        // The claim goes by no connection over another network, and by the next one over this again.
        let second = try await connect(first, "127.0.0.2")
        let error = await #expect(throws: HandoffError.self) { try await handoff.presentClaim() }
        #expect(error?.code == .refused && error?.message.contains("another network") == true)
        let stream = await #expect(throws: HandoffError.self) { try await handoff.openContinuationStream() }
        #expect(stream?.code == .refused)
        let third = try await connect(second, "127.0.0.1")
        #expect(try await handoff.presentClaim().0 === third)
        await third.close()
    }
}
