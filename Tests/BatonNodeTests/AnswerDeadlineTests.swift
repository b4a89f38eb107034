// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDiscovery
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTLS
import BatonTestSupport
import BatonTransport
import Dispatch
import FoundationEssentials
import Logging
import SwiftProtobuf
import Testing

import struct SystemPackage.FilePath

@testable import BatonAccount
@testable import BatonNode

/// Devices that are asked and say nothing.
@Suite("Waiting for the answers of devices", .timeLimit(.minutes(5)))
struct AnswerDeadlineTests {
    /// The announcement of a device: one activity, and that it has others.
    private func content() throws -> AdvertisementContent {
        AdvertisementContent(
            port: 40_000, addresses: [try #require(NetworkAddress("192.0.2.7"))], deviceName: "phone",
            current: AdvertisedActivity(
                id: [UInt8](repeating: 1, count: 16), type: "org.example.note",
                teamTag: [UInt8](repeating: 0, count: 8), version: 1, title: "Announced"),
            otherActivities: 3)
    }

    @Test("A device that does not list its activities is waited for so long, and listed as it is announced")
    func listing() async throws {
        let parts = try NodeParts(TestAccount(devices: 2))
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let files = parts.account.root.appending("configuration").string
        func activities(_ deadline: Duration?) -> PeerActivities {
            let policy = PolicyKeeper(path: FilePath(files + "/policy"), logger: logger)
            let handoffSwitch = HandoffSwitchKeeper(
                path: FilePath(files).appending("handoff"), marker: FilePath(files).appending("handoff-switched"),
                logger: logger)
            guard let deadline else {
                return PeerActivities(
                    directory: parts.directory, connections: parts.connections, policy: policy,
                    handoffSwitch: handoffSwitch, applications: parts.applications)
            }
            return PeerActivities(
                directory: parts.directory, connections: parts.connections, policy: policy,
                handoffSwitch: handoffSwitch, applications: parts.applications, answerDeadline: deadline
            )
        }
        #expect(await activities(nil).answerDeadline == .seconds(3))
        let device = parts.account.devices[1]
        var sealer = try device.makeSealer()
        await parts.announce(try sealer.seal(content()), under: "phone")
        let (near, far) = try await connectedPair(on: parts.loop)
        try await parts.connections.adopt(near, of: device.id.description, isDialled: false)
        let (asked, ask) = AsyncStream<BatonTransport.Stream>.makeStream()
        let serving = Task { for await incoming in far.incoming { ask.yield(incoming.stream) } }
        var streams = asked.makeAsyncIterator()

        let silent = await activities(.milliseconds(200)).all(for: .look)
        #expect(silent.map(\.activity.title) == ["Announced"] && silent.map(\.incomplete) == [true])
        // Nobody waits for its answer any more.
        let given = try #require(await streams.next())
        await given.untilClosedOrCancelled()

        // A device that answers in time, however late that is, is listed as it says.
        let patient = activities(.seconds(120))
        let listing = Task { await patient.all(for: .look) }
        let stream = try #require(await streams.next())
        try await stream.respond(.activityList(.init()))
        for number in 0..<2 {
            try await stream.send(
                record: WireActivitySummary.with {
                    $0.id = Data(repeating: UInt8(number), count: 16)
                    $0.type = "org.example.note"
                    $0.title = "Told \(number)"
                })
        }
        await stream.finish()
        let told = await listing.value
        #expect(told.map(\.activity.title) == ["Told 0", "Told 1"] && told.allSatisfy { !$0.incomplete })
        await near.close()
        await far.close()
        await serving.value
        await parts.connections.stop()
    }

    /// How a device reacts when it is dialled while the account key is at hand.
    enum Reaction: CaseIterable { case unreachable, unanswered, answered, answeredOddly }

    @Test("A device that is looked up is waited for so long, to be reached and to answer", arguments: Reaction.allCases)
    func lookup(_ reaction: Reaction) async throws {
        let account = try TestAccount(devices: 2)
        let (own, other) = (account.devices[0], account.devices[1])
        let loop = EventLoop(name: "other")
        // With one connection the kernel's queue is full: the next waits for an answer.
        let listener = try Listener(
            at: .ip(.ipv4Loopback, port: 0), on: loop, backlog: reaction == .unreachable ? 0 : Listener.defaultBacklog)
        defer { listener.close() }
        let address = SocketAddress.ip(.ipv4Loopback, port: try #require(listener.localAddress.port))
        let filler = reaction == .unreachable ? try await Socket.connect(to: address, on: loop) : nil
        let context = try TLSContext(identity: TLSIdentity(other.account.identity))
        let (accepted, accept) = AsyncStream<Socket>.makeStream()
        if reaction != .unreachable { listener.start { accept.yield($0) } }
        let serving = Task {
            try await withThrowingDiscardingTaskGroup { group in
                for await socket in accepted {
                    let channel = TLSChannel(try TLSSession(server: context), isClient: false)
                    let connection = Connection(socket: socket, channel: channel, role: .acceptor, on: loop)
                    await connection.start()
                    group.addTask {
                        for await incoming in connection.incoming {
                            switch reaction {
                            case .answered:
                                try await incoming.stream.answer(.accountState(.init()), following: [WireSignedList]())
                            case .answeredOddly:
                                try await incoming.stream.answer(.accountState(.init()), following: [WireSignedList()])
                            case .unreachable, .unanswered:
                                await incoming.stream.untilClosedOrCancelled()
                            }
                        }
                    }
                }
            }
        }
        var sealer = try other.makeSealer()
        let strings = try sealer.seal(content())
        let opened = try JoiningOpener(secrets: AccountSecrets(account.key), ownDevice: own.id)
            .open(strings.flatMap { [UInt8($0.count)] + $0 })
        let identity = try TLSContext(identity: TLSIdentity(own.account.identity))
        #expect(AccountLookup.answerDeadline == .seconds(5))
        @Sendable func ask(within deadline: Duration) async -> AccountLookup.Answer? {
            await AccountLookup.ask(
                opened, at: [address], through: identity, having: own.account, within: deadline)
        }
        switch reaction {
        case .answered, .answeredOddly:
            let answer = try #require(await ask(within: .seconds(120)))
            #expect(answer.device.deviceID == other.id.description)
            // An unreadable answer is an answer as well.
            switch answer.lists {
            case .success(let lists): #expect(reaction == .answered && lists.isEmpty)
            case .failure(let error): #expect(reaction == .answeredOddly && error == .malformed)
            }
        case .unreachable, .unanswered:
            // It is the deadline that ends it: who has more time still waits then.
            let isOver = Lock(false)
            let patient = Task {
                let answer = await ask(within: .seconds(3600))
                isOver.withLock { $0 = true }
                return answer
            }
            #expect(await ask(within: .milliseconds(300)) == nil)
            #expect(!isOver.withLock { $0 })
            patient.cancel()
            #expect(await patient.value == nil)
        }
        accept.finish()
        serving.cancel()
        withExtendedLifetime(filler) {}
    }

    @Test("An application is waited for so long to take a continuation stream")
    func stream() async throws {
        let parts = try NodeParts(TestAccount())
        func service(_ deadline: Duration?) -> PeerService {
            let streams = ByteBudget(bytes: 4 << 20).part(reserved: 0, ceiling: 4 << 20)
            guard let deadline else {
                return PeerService(
                    offers: parts.offers, documents: parts.documents, exchange: parts.exchange, streams: streams)
            }
            return PeerService(
                offers: parts.offers, documents: parts.documents, exchange: parts.exchange, streams: streams,
                streamDeadline: deadline)
        }
        #expect(service(nil).streamDeadline == .seconds(5))
        let (node, application) = try await connectedPair(on: parts.loop)
        let activity = try OfferedActivity(
            .with {
                $0.type = "org.example.shell"
                $0.supportsContinuationStreams = true
            }, document: nil)
        let events = try await parts.offers.offer(activity, from: node)
        let desktop = PeerName(id: "d", name: "desktop")
        let claim = try await parts.offers.claim(activity.id, by: desktop).claim
        let (near, far) = try await connectedPair(on: parts.loop)
        let request: [UInt8] = try WireRequest.with { $0.continuationStream.claimID = Data(claim.bytes) }
            .serializedBytes()
        let questions = application.incoming.makeAsyncIterator()
        let requests = near.incoming.makeAsyncIterator()

        // This application does not answer.
        let asked = try await far.open(request)
        await service(.milliseconds(200)).serve(try #require(await requests.next()), from: desktop, on: near)
        guard case .failure(let late)? = try await WireResponse(serializedBytes: asked.response()).kind
        else { throw HandoffError(.internal, "no error") }
        #expect(HandoffError(late).code == .timedOut)
        let given = try #require(await questions.next())
        await given.stream.untilClosedOrCancelled()

        // This application answers in time, however late that is.
        let again = try await far.open(request)
        let incoming = try #require(await requests.next())
        let serving = Task { await service(.seconds(3600)).serve(incoming, from: desktop, on: near) }
        let question = try #require(await questions.next())
        try await question.stream.respond(.continuationStream(.init()))
        _ = try await again.response()
        await again.reset(.cancelled)
        await serving.value
        withExtendedLifetime(events) {}
        for connection in [near, far, node, application] { await connection.close() }
    }
}
