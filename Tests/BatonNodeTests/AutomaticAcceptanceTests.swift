// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDiscovery
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTestSupport
import BatonTransport
import Foundation
import Logging
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonAccount
@testable import BatonNode

/// A node takes documents over by itself that a rule of the user accepts.
@Suite("Rules that accept", .timeLimit(.minutes(5)))
final class AutomaticAcceptanceTests {
    private let scratch: ScratchFolder
    private var folder: String { scratch.path }
    private let parts: NodeParts
    private typealias Opening = @Sendable (FilePath) async throws -> DestinationFolder

    private let makeAcceptance: (HandoffDeadlines, Opening?) -> AutomaticAcceptance
    /// The last one that was started, for as long as anything of it goes on.
    private weak var acceptance: AutomaticAcceptance?
    private let handoffs = HandoffTable()
    private let handoffSwitch: HandoffSwitchKeeper
    private let log = LineRecorder()
    private var rules: String { folder + "/accept-policy" }
    /// Where is noted what a rule has begun to take over.
    private var takenPath: String { folder + "/taken" }

    init() throws {
        scratch = try ScratchFolder("acceptance")
        let folder = scratch.path
        let rules = folder + "/accept-policy"
        try Self.write("accept to=\(folder)\n", to: rules)
        parts = try NodeParts(TestAccount(devices: 4))
        let logger = Logger(label: "test") { [log] _ in log }
        let policy = PolicyKeeper(path: FilePath(rules), logger: logger)
        handoffSwitch = parts.handoffSwitch
        makeAcceptance = { [parts, handoffs, handoffSwitch] deadlines, openDestination in
            AutomaticAcceptance(
                policy: policy, takenPath: FilePath(folder + "/taken"), directory: parts.directory,
                exchange: parts.exchange, handoffs: handoffs, handoffSwitch: handoffSwitch, deadlines: deadlines,
                bound: NodeLimits().acceptedWaiting, logger: logger,
                openDestination: openDestination ?? { [parts] in try await parts.documents.openDestination($0) },
                makeHandoff: { [parts] plan in
                    Handoff(
                        plan, connections: parts.connections, documents: parts.documents,
                        applications: parts.applications, files: parts.files, deadlines: deadlines)
                })
        }
    }

    /// Starts to follow the rules, until the task is cancelled.
    ///
    /// - Parameters:
    ///   - rest: time for what happens meanwhile, also on a busy machine.
    ///   - opening: how long a folder may take to open.
    private func start(
        rest: Duration = .seconds(30), opening: Duration = .seconds(60), by openDestination: Opening? = nil
    ) -> Task<Void, Never> {
        var deadlines = HandoffDeadlines()
        deadlines.rest = rest
        deadlines.opening = opening
        let acceptance = makeAcceptance(deadlines, openDestination)
        self.acceptance = acceptance
        return Task { await acceptance.run() }
    }

    private static func write(_ text: String, to path: String) throws {
        // A reader finds the old rules or the new ones, and nothing between.
        let new = path + ".new"
        try Data(text.utf8).write(to: URL(filePath: new))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: new)
        try #require(rename(new, path) == 0)
    }

    private func announce(_ device: TestAccount.Device, activity: UInt8 = 1) async throws {
        var sealer = try device.makeSealer()
        let document = AdvertisedActivity(
            id: [UInt8](repeating: activity, count: 16), type: "public.data", teamTag: [UInt8](repeating: 0, count: 8),
            version: 1, flags: .document, documentSize: 10, title: "Scan")
        let content = AdvertisementContent(port: 40_000, addresses: [], deviceName: "scanner", current: document)
        await parts.announce(try sealer.seal(content), under: device.id.description)
    }

    /// The devices of which a rule has begun to take something over.
    private func takenFrom() -> [String] {
        let lines = (try? String(contentsOfFile: takenPath, encoding: .utf8)) ?? ""
        return lines.split(separator: "\n").map { String($0.prefix { $0 != " " }) }
    }

    /// Answers what is asked on a connection.
    private func serve(
        _ connection: Connection,
        _ answer: @escaping @Sendable (WireRequest.OneOf_Kind) async throws -> WireResponse.OneOf_Kind
    ) {
        Task {
            for await incoming in connection.incoming {
                do {
                    try await incoming.stream.respond(try await answer(try WireRequest.decode(incoming.request)))
                    await incoming.stream.finish()
                } catch {
                    await incoming.stream.fail(HandoffError(wrapping: error))
                }
            }
        }
    }

    /// As many handoffs as there may be.
    private func fillTable() async throws -> [Handoff] {
        let handoffs = (0..<HandoffTable.bound).map { _ in parts.handoff() }
        for handoff in handoffs { try await self.handoffs.insert(handoff) }
        return handoffs
    }

    /// The device's first document does not come, so that its second one waits.
    @Test("A document that waited for its turn is held against the rules of that time")
    func changedRules() async throws {
        let running = start()
        let device = parts.account.devices[1]
        await parts.directory.prove(device.id.description)
        try await announce(device)
        try await eventually("the first has failed") { log.lines.contains { $0.contains("was not taken over") } }
        try await announce(device, activity: 2)
        // Each change is looked at as a whole before the next one: once a second device had its turn, the document
        // waits.
        for other in parts.account.devices[2...] {
            await parts.directory.prove(other.id.description)
            try await announce(other)
            try await eventually("\(other.id) has its turn") { takenFrom().contains(other.id.description) }
        }
        let other = folder + "/other"
        try FileManager.default.createDirectory(atPath: other, withIntermediateDirectories: false)
        try Self.write("accept to=\(other)\n", to: rules)
        // It is noted before it is said: the line is waited for, not the note.
        try await eventually("the second one's turn has come", within: .seconds(90)) {
            log.lines.contains { $0.hasSuffix("is taken over into \(other)") }
        }
        try await eventually("all are noted") { takenFrom().count == 4 }
        #expect(log.lines.filter { $0.hasSuffix("is taken over into \(folder)") }.count == 3)
        #expect(log.lines.filter { $0.hasSuffix("is taken over into \(other)") }.count == 1)
        running.cancel()
        await running.value
        await parts.directory.stop()
    }

    @Test("A document waits while Handoff is off, and has its turn once it is on")
    func switchedOff() async throws {
        let isOpening = Lock(false)
        let (opened, open) = AsyncStream<Void>.makeStream()
        let running = start(rest: .milliseconds(100)) { path in
            isOpening.withLock { $0 = true }
            for await _ in opened {}
            return try DestinationFolder(path)
        }
        let device = parts.account.devices[1]
        await parts.directory.prove(device.id.description)
        try await announce(device)
        try await eventually("its folder is being opened") { isOpening.withLock { $0 } }
        _ = try await handoffSwitch.set(false, for: "")
        open.finish()
        try await eventually("it waits") { log.lines.contains { $0.contains(" waits: Handoff is switched off") } }
        #expect(takenFrom().isEmpty)
        // The device is away when it is switched on.
        await parts.directory.handle(.removed(instance: device.id.description))
        _ = try await handoffSwitch.set(true, for: "")
        // As whoever switches it does.
        await parts.directory.changed()
        try await eventually("it has another turn") { takenFrom() == [device.id.description] }
        running.cancel()
        await running.value
        await parts.directory.stop()
    }

    @Test("A rule holds for devices that a connection has shown, and for others as soon as one has")
    func proved() async throws {
        let running = start()
        let (announced, shown) = (parts.account.devices[1], parts.account.devices[2])
        await parts.directory.prove(shown.id.description)
        try await announce(announced)
        try await announce(shown)
        try await eventually("the rule holds for who was shown") { takenFrom().contains(shown.id.description) }
        #expect(takenFrom() == [shown.id.description])
        await parts.directory.prove(announced.id.description)
        try await eventually("the rule holds for the other by now") { takenFrom().contains(announced.id.description) }
        running.cancel()
        await running.value
        await parts.directory.stop()
    }

    @Test("A document that a rule accepts while too many are under way has its turn again")
    func noPlace() async throws {
        let others = try await fillTable()
        let openings = Lock(0)
        let running = start(rest: .milliseconds(100)) { path in
            openings.withLock { $0 += 1 }
            return try DestinationFolder(path)
        }
        let device = parts.account.devices[1]
        await parts.directory.prove(device.id.description)
        try await announce(device)
        try await eventually("it has had several turns") { openings.withLock { $0 } > 3 }
        #expect(takenFrom().isEmpty)
        // That is said once a minute at the most.
        #expect(log.lines.count { $0.contains(" waits: ") } == 1)
        for other in others { await handoffs.remove(other) }
        try await eventually("its turn has come") { takenFrom() == [device.id.description] }
        running.cancel()
        await running.value
        await parts.directory.stop()
    }

    @Test("What a rule has not begun with when the node stops is left for the next start", arguments: [false, true])
    func stopped(hasPlace: Bool) async throws {
        let others = hasPlace ? [] : try await fillTable()
        let isOpening = Lock(false)
        let (opened, open) = AsyncStream<Void>.makeStream()
        let running = start(rest: .milliseconds(100)) { path in
            isOpening.withLock { $0 = true }
            for await _ in opened {}
            return try DestinationFolder(path)
        }
        let device = parts.account.devices[1]
        await parts.directory.prove(device.id.description)
        try await announce(device)
        try await eventually("its folder is being opened") { isOpening.withLock { $0 } }
        await acceptance?.stop()
        open.finish()
        if !hasPlace {
            try await eventually("it was looked for a place") { log.lines.contains { $0.contains(" waits: ") } }
        }
        for other in others { await handoffs.remove(other) }
        await running.value
        #expect(takenFrom().isEmpty)
        await parts.directory.stop()
    }

    @Test("A document that a rule accepts waits for no disk but that of its folder")
    func hangingDisk() async throws {
        let running = start()
        let (first, second) = (parts.account.devices[1], parts.account.devices[2])
        for device in [first, second] { await parts.directory.prove(device.id.description) }
        // The rules and the kernel's memory of their file are there once a first document was begun with.
        try await announce(first)
        try await eventually("the first is noted") { takenFrom() == [first.id.description] }
        let release = DispatchSemaphore(value: 0)
        StorageThread.executor.submit { release.wait() }
        defer { release.signal() }
        try await announce(second)
        try await eventually("the second was begun with") {
            log.lines.count { $0.contains("is taken over into") } == 2
        }
        #expect(takenFrom() == [first.id.description])
        release.signal()
        try await eventually("it is noted") { takenFrom() == [first, second].map(\.id.description) }
        running.cancel()
        await running.value
        await parts.directory.stop()
    }

    /// Follows the rules while a device is connected that announces a document.
    ///
    /// - Parameters:
    ///   - answer: what the device answers.
    ///   - body: is done once it has announced it.
    private func whileConnected(
        to device: TestAccount.Device,
        answering answer: @escaping @Sendable (WireRequest.OneOf_Kind) async throws -> WireResponse.OneOf_Kind,
        meanwhile body: () async throws -> Void
    ) async throws {
        let (near, far) = try await connectedPair(on: parts.loop)
        try await parts.connections.adopt(near, of: device.id.description, isDialled: false)
        serve(far, answer)
        let running = start(rest: .milliseconds(100))
        await parts.directory.prove(device.id.description)
        try await announce(device)
        try await body()
        running.cancel()
        await running.value
        await near.close()
        await far.close()
        await parts.directory.stop()
    }

    @Test("What was on its way when Handoff was switched off is left to the user, also when it is on again")
    func switchedOffOnTheWay() async throws {
        let (device, other) = (parts.account.devices[1], parts.account.devices[2])
        let asked = Lock(0)
        try await whileConnected(to: device) { [handoffSwitch] request in
            guard case .payload(let request) = request else { throw HandoffError(.documentUnreadable, "it is gone") }
            asked.withLock { $0 += 1 }
            _ = try await handoffSwitch.set(false, for: "")
            return .payload(
                .with {
                    $0.claimID = Data(repeating: 7, count: 16)
                    $0.payload.summary.id = request.activityID
                    $0.payload.summary.kind = .document
                    $0.payload.summary.type = "public.data"
                    $0.payload.summary.teamTag = Data(repeating: 0, count: 8)
                    $0.payload.summary.title = "Scan"
                })
        } meanwhile: {
            try await eventually("it is not taken over") {
                log.lines.contains { $0.contains("was not taken over: Handoff is switched off") }
            }
            _ = try await handoffSwitch.set(true, for: "")
            // As whoever switches it does.
            await parts.directory.changed()
            // Each change is looked at as a whole before the next one.
            await parts.directory.prove(other.id.description)
            try await announce(other)
            try await eventually("another device has its turn") { takenFrom().contains(other.id.description) }
            #expect(takenFrom() == [device.id.description, other.id.description])
            #expect(asked.withLock { $0 } == 1)
        }
    }

    @Test("Nobody waits for a device's message about its own switch")
    func offThere() async throws {
        let (device, other) = (parts.account.devices[1], parts.account.devices[2])
        try await whileConnected(to: device) { _ in
            throw HandoffError(.handoffOff, "Handoff is switched off on this device")
        } meanwhile: {
            try await eventually("it has failed") { log.lines.contains { $0.contains("was not taken over") } }
            // Each change is looked at as a whole before the next one.
            await parts.directory.prove(other.id.description)
            try await announce(other)
            try await eventually("another device has its turn") { takenFrom().contains(other.id.description) }
            #expect(takenFrom() == [device.id.description, other.id.description])
            #expect(log.lines.count { $0.contains("“Scan” from scanner is taken over into") } <= 2)
        }
    }

    @Test("A takeover that a rule began once is not repeated after a start, and that is said")
    func begunBefore() async throws {
        let device = parts.account.devices[1]
        await parts.directory.prove(device.id.description)
        try await announce(device)
        let first = start(rest: .milliseconds(100))
        try await eventually("it was begun with") { log.lines.contains { $0.contains("was not taken over") } }
        first.cancel()
        await first.value
        let second = start()
        try await eventually("it is said") { log.lines.contains { $0.contains("is not taken over again") } }
        #expect(takenFrom() == [device.id.description])
        second.cancel()
        await second.value
        await parts.directory.stop()
    }

    @Test("A document whose folder does not open in time has its turn again")
    func opensLate() async throws {
        let openings = Lock(0)
        let running = start(rest: .milliseconds(100)) { path in
            let number = openings.withLock { count in
                count += 1
                return count
            }
            guard number > 3 else { throw HandoffError(.timedOut, "the folder did not open within 60 s") }
            return try DestinationFolder(path)
        }
        let device = parts.account.devices[1]
        await parts.directory.prove(device.id.description)
        try await announce(device)
        try await eventually("it was begun with") { takenFrom() == [device.id.description] }
        #expect(openings.withLock { $0 } == 4)
        running.cancel()
        await running.value
        await parts.directory.stop()
    }

    /// A file system in a program's hands that never answers, as a network drive that is away.
    @Test(
        "A rule whose folder hangs stops no other rule",
        .enabled(if: geteuid() == 0 && access("/dev/fuse", R_OK | W_OK) == 0, "it needs root and FUSE to mount"))
    func hangingFolder() async throws {
        let hanging = folder + "/hanging"
        try FileManager.default.createDirectory(atPath: hanging, withIntermediateDirectories: false)
        let server = try FileDescriptor.open("/dev/fuse", .readWrite)
        defer { umount2(hanging, 2) }
        // The closed descriptor ends all waits for an answer.
        defer { try? server.close() }
        let options = "fd=\(server.rawValue),rootmode=40000,user_id=0,group_id=0"
        let isMounted = mount("baton-test", hanging, "fuse", 0, options) == 0
        // Root of a container may not.
        if !isMounted, errno == EPERM { try Test.cancel("this root may not mount") }
        try #require(isMounted)
        let devices = parts.account.devices[1...]
        let first = devices.prefix(2).map { "accept device=\($0.id) to=\(hanging)\n" }.joined()
        try Self.write(first + "accept to=\(folder)\n", to: rules)
        let running = start(opening: .milliseconds(300))
        for device in devices {
            await parts.directory.prove(device.id.description)
            try await announce(device)
        }
        try await eventually("the third has its turn") { takenFrom() == [devices[3].id.description] }
        try await eventually("it is said what hangs") {
            log.lines.contains { $0.contains("did not open within") }
        }
        running.cancel()
        await running.value
        await parts.directory.stop()
    }
}
