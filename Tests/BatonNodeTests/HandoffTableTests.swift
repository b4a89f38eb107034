// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTestSupport
import BatonTransport
import Foundation
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonNode

/// Handoffs of this device, none of which begins.
@Suite("Table of handoffs", .timeLimit(.minutes(5)))
struct HandoffTableTests {
    @Test("So many handoffs are under way at once")
    func bound() async throws {
        let (parts, table) = (try NodeParts(TestAccount(devices: 1)), HandoffTable())
        #expect(HandoffTable.bound == 32)
        var entered: [Handoff] = []
        for _ in 0..<HandoffTable.bound {
            let handoff = parts.handoff()
            try await table.insert(handoff)
            entered.append(handoff)
        }
        let late = parts.handoff()
        let error = await #expect(throws: HandoffError.self) { try await table.insert(late) }
        #expect(error?.code == .limitExceeded)
        #expect(await table[late.id] == nil)
        // One that is over has made room for another, and so has one that an application has now.
        await table.remove(entered[0])
        try await table.insert(late)
        await #expect(throws: HandoffError.self) { try await table.insert(parts.handoff()) }
        #expect(await table[entered[1].id] === entered[1])
    }

    @Test("One activity is received into one folder once at a time")
    func sameFolder() async throws {
        let (parts, table) = (try NodeParts(TestAccount(devices: 1)), HandoffTable())
        func handoff(_ activity: UInt8, into path: FilePath) async throws -> Handoff {
            let folder = try DestinationFolder(path)
            let summary = WireActivitySummary.with { $0.id = Data(repeating: activity, count: 16) }
            return parts.handoff(
                Handoff.Plan(
                    activity: summary, origin: PeerName(id: "a", name: "a"), candidates: [], destination: folder))
        }
        let (root, other) = (parts.account.root, parts.account.root.appending("other"))
        try FileManager.default.createDirectory(atPath: other.string, withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(
            atPath: "\(root)/link", withDestinationPath: root.string)
        let first = try await handoff(1, into: root)
        try await table.insert(first)
        for path in [root, root.appending("link")] {
            let second = try await handoff(1, into: path)
            let error = await #expect(throws: HandoffError.self) { try await table.insert(second) }
            #expect(error?.code == .destinationExists)
            #expect(await table[second.id] == nil)
        }
        try await table.insert(try await handoff(1, into: other))
        try await table.insert(try await handoff(2, into: root))
        await table.remove(first)
        let second = try await handoff(1, into: root)
        try await table.insert(second)
        // Nobody can reach its origin. A device that hears of the failure may try again.
        await table.begin(second)
        for await _ in second.events {}
        #expect(await second.isOver)
        try await table.insert(try await handoff(1, into: root))
    }

    @Test("None begins that comes when the node stops, also where none was under way")
    func stopped() async throws {
        let (parts, table) = (try NodeParts(TestAccount(devices: 1)), HandoffTable())
        await table.stop(grace: .zero)
        let late = parts.handoff()
        let error = await #expect(throws: HandoffError.self) { try await table.insert(late) }
        #expect(error?.code == .nodeStopping)
        #expect(await table[late.id] == nil)
    }

    @Test("A handoff that is started while the node stops fails for that reason, and is waited for")
    func startedMeanwhile() async throws {
        let (parts, table) = (try NodeParts(TestAccount(devices: 1)), HandoffTable())
        let handoff = parts.handoff()
        try await table.insert(handoff)
        let stopping = Task {
            await table.stop(grace: .seconds(60))
            return await handoff.isOver
        }
        try await untilStopping(table, parts)
        await table.begin(handoff)
        #expect(await stopping.value)
        let last = await handoff.events.reduce(nil) { $1.kind ?? $0 }
        guard case .failed(let failure) = last else {
            Issue.record("it did not fail: \(String(describing: last))")
            return
        }
        #expect(HandoffError(failure).code == .nodeStopping)
    }

    @Test("A step that hangs is not waited for without end when the node stops")
    func hanging() async throws {
        let (parts, table) = (try NodeParts(TestAccount(devices: 2)), HandoffTable())
        let origin = PeerName(id: parts.account.devices[1].id.description, name: "laptop")
        // It is asked for the activity, and says nothing.
        let (near, far) = try await connectedPair(on: parts.loop)
        try await parts.connections.adopt(near, of: origin.id, isDialled: false)
        let handoff = parts.handoff(
            Handoff.Plan(activity: .init(), origin: origin, candidates: [], destination: nil))
        try await table.insert(handoff)
        await table.begin(handoff)
        await table.stop(grace: .milliseconds(100))
        let last = await handoff.events.reduce(nil) { $1.kind ?? $0 }
        guard case .failed(let failure) = last else {
            Issue.record("it did not fail: \(String(describing: last))")
            return
        }
        #expect(HandoffError(failure).code == .nodeStopping)
        await near.close()
        await far.close()
    }

    private func untilStopping(_ table: HandoffTable, _ parts: NodeParts) async throws {
        try await eventually("it is being stopped") {
            let late = parts.handoff()
            guard (try? await table.insert(late)) != nil else { return true }
            await table.remove(late)
            return false
        }
    }

    @Test("A handoff that is over before it has begun is waited for no longer when the node stops")
    func removedMeanwhile() async throws {
        let (parts, table) = (try NodeParts(TestAccount(devices: 1)), HandoffTable())
        let handoff = parts.handoff()
        try await table.insert(handoff)
        let stopping = Task { await table.stop(grace: .seconds(3600)) }
        try await untilStopping(table, parts)
        await table.remove(handoff)
        await stopping.value
    }

    @Test(
        "What goes on for somebody who has gone ends for the same document, also where it is offered anew",
        arguments: [(7, nil), (8, 3)] as [(UInt8, UInt8?)])
    func detached(_ file: UInt8, _ place: UInt8?) async throws {
        let parts = try NodeParts(TestAccount(devices: 1))
        let scratch = try ScratchFolder("detached")
        defer { scratch.remove() }
        let folder = try DestinationFolder(scratch.filePath)
        func identity(_ file: UInt8?, _ place: UInt8?) -> DocumentIdentity {
            func half(_ value: UInt8?) -> [UInt8] { value.map { [UInt8](repeating: $0, count: 16) } ?? [] }
            return DocumentIdentity(file: half(file), place: half(place))
        }
        func activity(
            _ id: UInt8, document: UInt8?, at place: UInt8? = nil, type: String = "public.data", title: String = ""
        ) -> WireActivitySummary {
            .with {
                $0.id = Data(repeating: id, count: ActivityID.size)
                $0.type = type
                $0.title = title
                $0.identity = identity(document, place)
            }
        }
        func plan(_ activity: WireActivitySummary, origin: String = "a", at place: DestinationFolder?) -> Handoff.Plan {
            Handoff.Plan(
                activity: activity, origin: PeerName(id: origin, name: origin), candidates: [], destination: place)
        }
        let table = HandoffTable()
        let first = parts.handoff(plan(activity(1, document: nil), at: folder))
        await first.setIdentity(identity(7, 3))
        try await table.insert(first)
        // Somebody waits for it still.
        #expect(await !table.hasDetached(from: "a", into: folder))
        _ = await table.endDetached(like: plan(activity(1, document: 7), at: folder))
        #expect(await table[first.id] != nil)

        await table.setDetached(first)
        #expect(await table.hasDetached(from: "a", into: folder))
        #expect(await !table.hasDetached(from: "b", into: folder))
        #expect(await !table.hasDetached(from: "a", into: nil))
        for other in [
            plan(activity(2, document: 8, at: 4), at: folder),
            // A file that has gone leaves its number to another.
            plan(activity(2, document: 7, at: 4, title: "another"), at: folder),
            plan(activity(2, document: nil), at: folder),
            plan(activity(2, document: 7, type: "public.folder"), at: folder),
            plan(activity(1, document: 7), origin: "b", at: folder), plan(activity(1, document: 7), at: nil),
        ] {
            _ = await table.endDetached(like: other)
            #expect(await table[first.id] != nil, "\(other.activity)")
        }
        // The origin's node has started again meanwhile, and its document has another id, and may have been saved.
        let same = plan(activity(2, document: file, at: place), at: folder)
        async let continued = table.endDetached(like: same)
        try await eventually("it is cancelled") { await !table.hasDetached(from: "a", into: folder) }
        await table.begin(first)
        #expect(await continued == nil)
        #expect(await table[first.id] == nil)
        #expect(await first.isOver)
    }
}

extension Handoff {
    fileprivate func setIdentity(_ identity: DocumentIdentity) { known.identity = identity }
}
