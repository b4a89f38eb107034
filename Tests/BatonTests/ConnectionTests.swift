// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages
import BatonProtocol
import BatonTestSupport
import BatonTransport
import FoundationEssentials
import Testing

@Suite("Connection to the node")
struct ConnectionTests {
    private func description() throws -> Application.Description {
        try Application.Description(identifier: "org.example.notes", name: "Notes")
    }

    @Test("Without a node it says so once, goes on, and offers what is current when one appears")
    func nodeAppears() async throws {
        let scratch = try ScratchFolder("node")
        defer { scratch.remove() }
        let folder = scratch.path
        let (logger, lines) = LogRecorder.make()
        let application = try Application(
            description(), home: try Home(environment: ["BATON_HOME": folder]), logger: logger, deadlines: .short)
        let states = Box<[NodeState]>([])
        let watching = Task { [watched = application.nodeState] in
            for await state in watched { states.change { $0.append(state) } }
        }
        let activity = try UserActivity(activityType: Stage.editing, application: application)
        activity.userInfo = ["page": 1]
        activity.becomeCurrent()
        try await eventually("it looked for the node") {
            if case .missing(let reason)? = states.value.last { reason.contains("baton node") } else { false }
        }
        // Several attempts at 20 to 80 ms.
        try await Task.sleep(for: .milliseconds(400))
        #expect(activity.isCurrent)
        #expect(lines.value.filter { $0.text.contains("no node is running") }.count == 1)

        for round in 1...2 {
            let (node, _) = try await ApplicationNode.start(in: folder)
            try await eventually("offered") { await node.offered.count == 1 }
            #expect(await node.registrations.first?.identifier == "org.example.notes")
            #expect(await node.offered.first?.request.type == Stage.editing)
            try await eventually("connected") { states.value.last == .connected }
            await node.stop()
            try await eventually("missed again") {
                if case .missing? = states.value.last { true } else { false }
            }
            #expect(lines.value.filter { $0.text.contains("has found its node") }.count == round)
        }
        await application.close()
        try await eventually("idle") { states.value.last == .idle }
        watching.cancel()
        await watching.value
    }

    @Test("A node without room for one more application is asked again until it has room, and the state says so")
    func roomLater() async throws {
        let (node, home) = try await ApplicationNode.start()
        await node.refuseRegistrations(HandoffError(.limitExceeded, "128 applications are registered already"))
        let (logger, lines) = LogRecorder.make()
        let application = try Application(description(), home: home, logger: logger, deadlines: .short)
        application.start()
        try await eventually("it has asked several times") { await node.refusedRegistrations >= 3 }
        guard case .missing(let reason) = await application.nodeState.first(where: { _ in true }) else {
            Issue.record("the state says that all is well")
            return
        }
        #expect(reason.contains("128 applications are registered already"))
        #expect(lines.value.filter { $0.text.contains("does not register") }.count == 1)

        await node.refuseRegistrations(nil)
        try await eventually("registered") { await node.registrations.count == 1 }
        _ = await application.nodeState.first { $0 == .connected }
        await application.close()
    }

    @Test("A node that cut the connection because of a limit is not said to have stopped")
    func cutOff() async throws {
        let (node, home) = try await ApplicationNode.start()
        let (logger, lines) = LogRecorder.make()
        let application = try Application(description(), home: home, logger: logger, deadlines: .short)
        application.start()
        try await eventually("registered") { await node.registrations.count == 1 }
        await node.close(.limitExceeded)
        try await eventually("it said why") {
            lines.value.contains { $0.text.contains("the other side closed the connection (limit exceeded)") }
        }
        try await eventually("registered again") { await node.registrations.count == 2 }
        #expect(!lines.value.contains { $0.text.contains("stopped") })
        await application.close()
    }

    @Test("The identifier of an activity outlives the connection")
    func sameIdentifier() async throws {
        let scratch = try ScratchFolder("node")
        defer { scratch.remove() }
        let folder = scratch.path
        let (first, home) = try await ApplicationNode.start(in: folder)
        let application = try Application(
            description(), home: home, logger: LogRecorder.make().0, deadlines: .short)
        let activity = try UserActivity(activityType: Stage.editing, application: application)
        activity.becomeCurrent()
        try await eventually("offered") { await first.offered.count == 1 }
        let id = await first.offered.first?.request.activityID
        await first.stop()
        let (second, _) = try await ApplicationNode.start(in: folder)
        try await eventually("offered again") { await second.offered.count == 1 }
        #expect(await second.offered.first?.request.activityID == id)
    }

    @Test("Closing withdraws and ends the connection; starting begins anew")
    func closing() async throws {
        let stage = try await Stage()
        let activity = try stage.activity()
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        await stage.application.close()
        try await eventually("gone") { await stage.node.departures == 1 }
        _ = try await stage.offered(0)
        #expect(!activity.isCurrent)
        // Closing once more, and without having started, changes nothing.
        await stage.application.close()
        stage.application.start()
        stage.application.start()
        try await eventually("registered again") { await stage.node.registrations.count == 2 }
        #expect(await stage.node.offered.isEmpty)
    }

    @Test("An application that is let go leaves nothing running, and is gone for the node")
    func letGo() async throws {
        let (node, home) = try await ApplicationNode.start()
        let delegate = ApplicationRecorder()
        weak var application: Application?
        weak var activity: UserActivity?
        do {
            let made = try Application(description(), home: home, logger: LogRecorder.make().0)
            made.delegate = delegate
            application = made
            let current = try UserActivity(activityType: Stage.editing, application: made)
            activity = current
            current.needsSave = true
            current.becomeCurrent()
            try await eventually("offered") { await node.offered.count == 1 }
            withExtendedLifetime(current) {}
        }
        try await eventually("released") { application == nil && activity == nil }
        try await eventually("gone for the node") { await node.departures == 1 }
        try await eventually("withdrawn") { await node.offered.isEmpty }
    }

    @Test("While it looks for a node it can be let go as well")
    func letGoWithoutNode() async throws {
        let scratch = try ScratchFolder("node")
        defer { scratch.remove() }
        let home = try Home(environment: ["BATON_HOME": scratch.path])
        weak var application: Application?
        let states: AsyncStream<NodeState>
        do {
            let made = try Application(description(), home: home, logger: LogRecorder.make().0, deadlines: .short)
            application = made
            states = made.nodeState
            made.start()
            try await eventually("it looks") {
                var iterator = made.nodeState.makeAsyncIterator()
                return await iterator.next() != .idle
            }
        }
        try await eventually("released") { application == nil }
        // The states end with the application.
        for await _ in states {}
    }

    @Test("Nothing runs before it is used: no thread, no descriptor, no file")
    func noThread() async {
        await #expect(processExitsWith: .success) {
            func count(_ folder: String) throws -> Int {
                try FileManager.default.contentsOfDirectory(atPath: "/proc/self/" + folder).count
            }
            // The runtime's own threads have begun when the first line of a test runs.
            try await Task.sleep(for: .milliseconds(100))
            let scratch = try ScratchFolder("node")
            defer { scratch.remove() }
            let folder = scratch.path + "/home"
            let (threads, descriptors) = (try count("task"), try count("fd"))
            let application = try Application(
                Application.Description(identifier: "org.example.notes"),
                home: try Home(environment: ["BATON_HOME": folder]))
            application.isInFront = true
            let activities = try (0..<50).map { index in
                let activity = try UserActivity(activityType: Stage.editing, application: application)
                activity.userInfo = ["index": .integer(Int64(index))]
                activity.needsSave = true
                activity.resignCurrent()
                return activity
            }
            #expect(try count("task") <= threads)
            #expect(try count("fd") == descriptors)
            #expect(!FileManager.default.fileExists(atPath: folder))
            withExtendedLifetime(activities) {}
        }
    }

    @Test("So many may watch the node's state, and the stream of one more ends at once")
    func watchers() async throws {
        let application = try Application(
            description(), home: try Home(environment: ["BATON_HOME": "/nowhere"]), logger: LogRecorder.make().0)
        let watched = (0..<64).map { _ in application.nodeState }
        for await _ in application.nodeState { Issue.record("it has no state") }
        withExtendedLifetime(watched) {}
    }

    @Test("A description out of bounds says what is wrong")
    func descriptions() throws {
        #expect(throws: ApplicationError.self) { try Application.Description(identifier: "") }
        #expect(throws: ApplicationError.self) {
            try Application.Description(identifier: String(repeating: "a", count: 256))
        }
        #expect(throws: ApplicationError.self) { try Application.Description(identifier: "a", name: "a\u{1B}[2J") }
        #expect(throws: ApplicationError.self) { try ContinuedActivityType("a b") }
        #expect(throws: ApplicationError.self) { try ContinuedActivityType("a", versions: 0...0) }
        let types = try (0..<129).map { try ContinuedActivityType("t\($0)") }
        #expect(throws: ApplicationError.self) { try Application.Description(identifier: "a", continues: types) }
        #expect(throws: ApplicationError.self) {
            try Application.Description(identifier: "a", continues: [types[0], types[0]])
        }
        let description = try Application.Description(identifier: "a", continues: Array(types.prefix(128)))
        #expect(description.name == "a" && description.team.isEmpty)
    }
}
