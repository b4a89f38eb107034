// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages
import BatonTestSupport
import BatonTransport
import FoundationEssentials
import Logging
import SwiftProtobuf

/// An application connected to a node.
struct Stage {
    static let editing = "org.example.notes.editing"

    let application: Application
    let node: ApplicationNode
    let lines: Box<[(level: Logger.Level, text: String)]>

    /// - Parameters:
    ///   - continues: the types that the application declares.
    ///   - deadlines: shorter than the real ones if a test waits for them.
    ///   - isStarted: whether the application is registered when this returns.
    init(
        continues: [ContinuedActivityType] = [], deadlines: ApplicationDeadlines = .init(), isStarted: Bool = true
    ) async throws {
        let home: Home
        (node, home) = try await ApplicationNode.start()
        let logger: Logger
        (logger, lines) = LogRecorder.make()
        application = try Application(
            Application.Description(
                identifier: "org.example.notes", name: "Notes", team: "T1", continues: continues),
            home: home, logger: logger, deadlines: deadlines)
        guard isStarted else { return }
        application.start()
        let node = node
        try await eventually("registered") { await node.registrations.count == 1 }
    }

    func activity(_ type: String = Self.editing) throws -> UserActivity {
        try UserActivity(activityType: type, application: application)
    }

    /// The offers that the node has now, once there are so many.
    func offered(_ count: Int) async throws -> [ApplicationNode.Offer] {
        try await eventually("\(count) offered") { await node.offered.count == count }
        return await node.offered
    }

    /// The state that the node gets when a device continues the activity.
    func save(
        _ activity: UserActivity, for device: String = "laptop"
    ) async throws(HandoffError) -> WireWillSaveResponse {
        let id = Data(await node.offers.last?.request.activityID ?? Data())
        let (answer, stream) = try await node.ask(
            .willSave(
                .with {
                    $0.activityID = id
                    $0.device = device
                }))
        await stream.finish()
        guard case .willSave(let state) = answer else { throw HandoffError(.internal, "another answer") }
        return state
    }
}

extension ApplicationDeadlines {
    /// Deadlines that a test waits for.
    static var short: ApplicationDeadlines {
        var deadlines = ApplicationDeadlines()
        deadlines.save = .milliseconds(300)
        deadlines.willContinue = .milliseconds(300)
        deadlines.continuing = .milliseconds(300)
        deadlines.shortestRetry = .milliseconds(20)
        deadlines.longestRetry = .milliseconds(80)
        return deadlines
    }
}
