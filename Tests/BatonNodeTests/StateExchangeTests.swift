// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTLS
import BatonTestSupport
import BatonTransport
import FoundationEssentials
import Logging
import SwiftProtobuf
import Testing

import struct SystemPackage.FilePath

@testable import BatonAccount
@testable import BatonNode

/// A node, and other devices of its account that are no nodes: what they get over real connections.
@Suite("Revocation lists between devices", .timeLimit(.minutes(5)))
struct StateExchangeTests {
    /// A running node, with the account key and a second device of the account.
    private final class Scene: Sendable {
        private let scratch: ScratchFolder
        var folder: String { scratch.path }
        let key: AccountKey
        let node: Node
        let store: AccountStore
        let member: Account
        let secrets: AccountSecrets
        let port: UInt16
        let loop = EventLoop(name: "member")
        /// What the node logs.
        let log = LineRecorder()

        /// - Parameters:
        ///   - revocations: lists that the node has from the start.
        ///   - listsDeadline: see ``NodeLimits``. By default longer than anything here takes.
        ///   - catchUpDeadline: the same.
        ///   - storingPause: the same.
        init(
            revocations: Int = 0, listsDeadline: Duration = .seconds(120), catchUpDeadline: Duration = .seconds(120),
            storingPause: Duration = .seconds(3600)
        ) async throws {
            scratch = try ScratchFolder("exchange")
            let home = try Home(environment: ["BATON_HOME": scratch.path])
            store = AccountStore(folder: AccountStore.folder(in: home))
            key = try store.make(deviceName: "node").key
            secrets = AccountSecrets(key)
            let second = AccountStore(folder: scratch.filePath.appending("second/account"))
            member = try second.join(key, deviceName: "member")
            var account = try store.load()
            for number in 0..<revocations {
                let other = try #require(DeviceID(bytes: [UInt8](repeating: UInt8(number), count: DeviceID.count)))
                _ = try account.revoke([other], with: secrets)
            }
            try store.save(stateOf: account)
            var tuning = NodeTuning()
            tuning.limits.listsDeadline = listsDeadline
            tuning.limits.catchUpDeadline = catchUpDeadline
            tuning.limits.storingPause = storingPause
            node = Node(home: home, tuning: tuning, logger: Logger(label: "test") { [log] _ in log })
            try await node.start()
            port = try #require(await node.port)
        }

        func close() async { await node.stop() }

        /// A connection as the second device makes it.
        func connect(revision: UInt64 = 0) async throws -> Connection {
            let context = try TLSContext(identity: TLSIdentity(member.identity))
            let server = try store.load()
            let socket = try await Socket.connect(
                toAnyOf: [.ip(try #require(IPAddress(bytes: [127, 0, 0, 1])), port: port)], on: loop,
                timeout: .seconds(60))
            let name = GateToken.serverName(
                keys: server.currentKeys, server: server.identity.id,
                gateNonce: try #require(await node.gateNonce))
            let session = try TLSSession(
                client: context, serverName: name, expectedPeer: server.identity.id.description)
            let connection = Connection(
                socket: socket, channel: TLSChannel(session, isClient: true), role: .dialer,
                revocationNumber: revision, on: loop)
            await connection.start()
            return connection
        }

        /// Gives the node lists, as the user's command does.
        ///
        /// - Parameter wrapping: what the keys are wrapped with; what this device's programs wrap with if nil.
        func adopt(_ lists: [GivenList], wrappedBy wrapping: SecretBytes? = nil) async throws {
            let wrapping = try wrapping ?? store.load().identity.localWrappingKey
            let home = try Home(environment: ["BATON_HOME": folder])
            let connection = try await Connection.connect(toLocalSocket: home.socketPath, on: loop)
            let messages = try lists.map { try WireSignedList($0, wrappedBy: wrapping) }
            let (_, stream) = try await connection.request(.adoptState(.with { $0.lists = messages }))
            await stream.finish()
            await connection.close()
        }
    }

    @Test("Lists that were signed apart are taken over by both, and both and the user are told so")
    func apart() async throws {
        let scene = try await Scene(revocations: 1)
        var member = scene.member
        let lost = try #require(DeviceID(bytes: [UInt8](repeating: 9, count: DeviceID.count)))
        _ = try member.revoke([lost], with: scene.secrets)
        #expect(member.state.number == (try scene.store.load().state.number))
        let ofNode = try scene.store.load().state.revoked
        #expect(!scene.log.lines.contains { $0.contains("signed apart") })

        let connection = try await scene.connect(revision: member.state.revision)
        try await connection.ready()
        // The node asks, because what the member has is another list of the same number.
        for await incoming in connection.incoming {
            guard case .accountState = try WireRequest.decode(incoming.request) else { continue }
            try await incoming.stream.answer(
                .accountState(.with { $0.revision = member.state.revision }),
                following: member.travellingLists(wrappedBy: connection.keyEncryptionKey))
            break
        }
        try await eventually("both lists are stored", within: .seconds(60)) {
            try scene.store.load().state.lists.count == 2
        }
        let merged = try scene.store.load()
        #expect(merged.state.isApart && merged.state.number == 1)
        #expect(merged.state.revoked == ofNode.union([lost]))
        // With the lists that the node gives now, the member has the same.
        let given = try await connection.accountState(asking: member.state.revision, within: .seconds(60))
        let authority = member.identity.authorityKey
        #expect(try member.take(given.lists.map { try GivenList($0, wrappedBy: given.key, authority: authority) }))
        #expect(member.state == merged.state && member.currentKeys == merged.currentKeys)
        await connection.close()

        #expect(scene.log.lines.contains { $0.contains("revocation lists were signed apart") })
        let home = try Home(environment: ["BATON_HOME": scene.folder])
        let local = try await Connection.connect(toLocalSocket: home.socketPath, on: scene.loop)
        let (devices, listing) = try await local.request(.devices(.init()))
        guard case .devices(let answer) = devices else { throw HandoffError(.internal, "another answer") }
        #expect(answer.listsApart)
        await listing.finish()
        await local.close()
        await scene.close()
    }

    @Test("A device that lacks lists is served the lists and their keys, and nothing else before")
    func behind() async throws {
        let scene = try await Scene(revocations: 2)
        let connection = try await scene.connect()
        // It asks for something else at once, which waits until it has caught up.
        async let early = connection.request(.activityList(.init()))
        let answer = try await connection.accountState(asking: 0, within: .seconds(60))
        var member = scene.member
        let authority = member.identity.authorityKey
        let lists = try answer.lists.map { try GivenList($0, wrappedBy: answer.key, authority: authority) }
        #expect(try member.take(lists))
        let own = try scene.store.load()
        #expect(member.state == own.state && member.currentKeys == own.currentKeys)
        #expect(answer.revision == own.state.revision)
        // It was told, and may lose it all before it is stored: only what it says counts.
        _ = try await connection.accountState(asking: own.state.revision, within: .seconds(60))
        guard case .activityList = try await early.0 else { throw HandoffError(.internal, "another answer") }
        await connection.close()
        await scene.close()
    }

    @Test(
        "A device that never says that it has taken over the lists that it lacks is served nothing",
        arguments: [false, true])
    func stubborn(wasTold: Bool) async throws {
        let scene = try await Scene(revocations: 1, catchUpDeadline: .seconds(1))
        let stubborn = try await scene.connect()
        if wasTold { #expect(try await stubborn.accountState(asking: 0, within: .seconds(60)).lists.count == 1) }
        await #expect {
            try await stubborn.request(.activityList(.init()))
        } throws: {
            ($0 as? HandoffError)?.code == .refused
        }
        await stubborn.close()
        await scene.close()
    }

    @Test("Keys travel wrapped with what the two ends of a connection alone know, or the programs of a device")
    func wrapped() async throws {
        let scene = try await Scene()
        var account = try scene.store.load()
        let lost = try #require(DeviceID(bytes: [UInt8](repeating: 9, count: DeviceID.count)))
        _ = try account.revoke([lost], with: scene.secrets)
        let keys = account.currentKeys.concatenated
        let authority = account.identity.authorityKey
        let (first, second) = (try await scene.connect(), try await scene.connect())
        try await first.ready()
        try await second.ready()
        let ways = [
            account.identity.localWrappingKey, scene.member.identity.localWrappingKey,
            try await first.keyEncryptionKey, try await second.keyEncryptionKey,
        ]
        var forms: Set<Data> = []
        for (number, way) in ways.enumerated() {
            let lists = try account.travellingLists(wrappedBy: way)
            let wrapped = try #require(lists.last?.wrappedKeys)
            #expect(wrapped.count == 104)
            forms.insert(wrapped)
            let encoded = try #require(lists.last).serializedBytes() as [UInt8]
            keys.withUnsafeBytes { keys in
                for start in stride(from: 0, to: keys.count, by: 8) {
                    let word = keys[start..<(start + 8)]
                    #expect(!encoded.indices.contains { encoded[$0...].starts(with: word) }, "a word of a key is in it")
                }
            }
            #expect(try lists.read(wrappedBy: way, by: authority).last?.keys == account.currentKeys)
            let other = ways[(number + 1) % ways.count]
            #expect(try lists.read(wrappedBy: other, by: authority).last?.keys == nil)
            for place in [0, 52, 103] {
                var changed = lists
                changed[changed.count - 1].wrappedKeys[place] ^= 1
                #expect(try changed.read(wrappedBy: way, by: authority).last?.keys == nil)
            }
        }
        #expect(forms.count == ways.count)

        // A list without its keys is not taken.
        await #expect {
            try await scene.adopt(account.givenLists, wrappedBy: scene.member.identity.localWrappingKey)
        } throws: {
            ($0 as? HandoffError)?.code == .invalidRequest
        }
        #expect(try scene.store.load().state == .initial)
        try await scene.adopt(account.givenLists)
        #expect(try scene.store.load().state == account.state)
        await first.close()
        await second.close()
        await scene.close()
    }

    /// As on a full disk, which the user empties then.
    @Test(
        "Lists that could not be stored hold, and are stored when that is tried again: by the user, and by itself",
        arguments: [Duration.seconds(3600), .milliseconds(100)])
    func storedLater(pause: Duration) async throws {
        let scene = try await Scene(storingPause: pause)
        var account = try scene.store.load()
        let lost = try #require(DeviceID(bytes: [UInt8](repeating: 9, count: DeviceID.count)))
        _ = try account.revoke([lost], with: scene.secrets)
        // A folder in the place of the account's file stops it from being replaced.
        let obstacle = scene.folder + "/state/account/" + AccountFile.state
        try FileManager.default.createDirectory(atPath: obstacle, withIntermediateDirectories: false)
        for _ in 0..<2 {
            await #expect {
                try await scene.adopt(account.givenLists, wrappedBy: account.identity.localWrappingKey)
            } throws: {
                ($0 as? HandoffError)?.message.contains("locked out only while this node runs") == true
            }
        }
        try FileManager.default.removeItem(atPath: obstacle)
        #expect(try scene.store.load().state == .initial || pause < .seconds(1))
        if pause > .seconds(1) { try await scene.adopt(account.givenLists) }
        try await eventually("the list is stored") { try scene.store.load().state == account.state }
        await scene.close()
    }

    /// It may only have been busy, and both may go on for hours without another meeting.
    /// How a device does not answer.
    enum Failing: CaseIterable { case resets, staysSilent }

    @Test("A question that failed is put again on the same connection", arguments: Failing.allCases)
    func askedAgain(_ failing: Failing) async throws {
        let scene = try await Scene(listsDeadline: failing == .resets ? .seconds(120) : .seconds(1))
        var ahead = try scene.store.load()
        let other = try #require(DeviceID(bytes: [UInt8](repeating: 9, count: DeviceID.count)))
        _ = try ahead.revoke([other], with: scene.secrets)
        let connection = try await scene.connect(revision: ahead.state.revision)
        let answering = Task { [ahead] in
            var unanswered: [IncomingStream] = []
            for await incoming in connection.incoming {
                guard case .accountState = try WireRequest.decode(incoming.request) else { continue }
                if unanswered.count < 2 {
                    unanswered.append(incoming)
                    if failing == .resets { await incoming.stream.reset(.cancelled) }
                } else {
                    try await incoming.stream.answer(
                        .accountState(.with { $0.revision = ahead.state.revision }),
                        following: ahead.travellingLists(wrappedBy: connection.keyEncryptionKey))
                }
            }
        }
        try await connection.ready()
        try await eventually("the lists were taken over", within: .seconds(60)) {
            try scene.store.load().state == ahead.state
        }
        answering.cancel()
        await connection.close()
        await scene.close()
    }

    /// Its advertisements, by which it would be found, may be sealed with keys that this device does not have.
    @Test("A connected device is told of a new list at once, announced or not, and again if it does not take it over")
    func toldAtOnce() async throws {
        let scene = try await Scene()
        let connection = try await scene.connect()
        guard case .activityList = try await connection.request(.activityList(.init())).0 else {
            throw HandoffError(.internal, "another answer")
        }
        let (questions, question) = AsyncStream<UInt64>.makeStream()
        let answering = Task {
            for await incoming in connection.incoming {
                guard case .accountState(let request) = try WireRequest.decode(incoming.request) else { continue }
                question.yield(request.revision)
                // It has nothing itself, and does not ask in turn.
                try await incoming.stream.answer(.accountState(.init()), following: [WireSignedList]())
            }
        }
        var account = try scene.store.load()
        let lost = try #require(DeviceID(bytes: [UInt8](repeating: 9, count: DeviceID.count)))
        _ = try account.revoke([lost], with: scene.secrets)
        let began = ContinuousClock.now
        try await scene.adopt(account.givenLists)
        let told = try await withDeadline(.seconds(60), "it was not told twice") {
            var told: [UInt64] = []
            for await revision in questions {
                told.append(revision)
                if told.count == 2 { break }
            }
            return told
        }
        print("told twice after \(ContinuousClock.now - began)")
        #expect(told == [account.state.revision, account.state.revision])
        answering.cancel()
        await connection.close()
        await scene.close()
    }

    /// Its word that it has stored them may have been lost, or it is of a version that does not say so.
    @Test("A device that has the lists and has not said so is asked when it asks for something, be it told just before")
    func unconfirmed() async throws {
        let scene = try await Scene(catchUpDeadline: .milliseconds(1500))
        let connection = try await scene.connect()
        guard case .activityList = try await connection.request(.activityList(.init())).0 else {
            throw HandoffError(.internal, "another answer")
        }
        let revision = Lock<UInt64>(0)
        let (questions, question) = AsyncStream<Void>.makeStream()
        let answering = Task {
            for await incoming in connection.incoming {
                guard case .accountState = try WireRequest.decode(incoming.request) else { continue }
                try await incoming.stream.answer(
                    .accountState(.with { $0.revision = revision.withLock { $0 } }), following: [WireSignedList]())
                question.yield()
            }
        }
        var account = try scene.store.load()
        let lost = try #require(DeviceID(bytes: [UInt8](repeating: 9, count: DeviceID.count)))
        _ = try account.revoke([lost], with: scene.secrets)
        try await scene.adopt(account.givenLists)
        _ = await questions.first { true }
        revision.withLock { [current = account.state.revision] in $0 = current }
        guard case .activityList = try await connection.request(.activityList(.init())).0 else {
            throw HandoffError(.internal, "another answer")
        }
        answering.cancel()
        await connection.close()
        await scene.close()
    }

    @Test("A revoked device's live connection ends, and its next one in the handshake")
    func revoked() async throws {
        let scene = try await Scene()
        let connection = try await scene.connect()
        guard case .activityList = try await connection.request(.activityList(.init())).0 else {
            throw HandoffError(.internal, "another answer")
        }
        var account = try scene.store.load()
        _ = try account.revoke([scene.member.identity.id], with: scene.secrets)
        let began = ContinuousClock.now
        try await scene.adopt(account.givenLists)
        await connection.ended()
        print("the connection ended after \(ContinuousClock.now - began)")
        await #expect(throws: HandoffError.self) { try await connection.request(.activityList(.init())) }
        #expect(try scene.store.load().state == account.state)

        let refused = try await scene.connect()
        await #expect {
            try await refused.ready()
        } throws: {
            guard let error = $0 as? TransportError, case .refused = error.code else { return false }
            return "\(error)".contains("revoked")
        }
        await scene.close()
    }

    @Test("The node asks a device that has more, and takes over no list that another account signed")
    func ahead() async throws {
        let scene = try await Scene(revocations: 1)
        var ahead = try scene.store.load()
        let other = try #require(DeviceID(bytes: [UInt8](repeating: 9, count: DeviceID.count)))
        _ = try ahead.revoke([other], with: scene.secrets)
        let connection = try await scene.connect(revision: ahead.state.revision)
        try await connection.ready()
        for await incoming in connection.incoming {
            guard case .accountState(let request) = try WireRequest.decode(incoming.request) else { continue }
            #expect(request.revision == (try scene.store.load().state.revision))
            try await incoming.stream.respond(.accountState(.with { $0.revision = ahead.state.revision }))
            let lists = try await ahead.travellingLists(wrappedBy: connection.keyEncryptionKey)
            for list in lists { try await incoming.stream.send(record: list) }
            await incoming.stream.finish()
            break
        }
        try await eventually("the newer list is stored", within: .seconds(60)) {
            try scene.store.load().state == ahead.state
        }
        await connection.close()

        let strange = AccountSecrets(AccountKey())
        let list = try RevocationList(number: 9, revoked: [], signedWith: strange)
        let keys = strange.keys(generation: 9, list: list.digest)
        await #expect {
            try await scene.adopt([GivenList(list, keys: keys)])
        } throws: {
            ($0 as? HandoffError)?.code == .invalidRequest
        }
        #expect(try scene.store.load().state == ahead.state)
        await scene.close()
    }
}
