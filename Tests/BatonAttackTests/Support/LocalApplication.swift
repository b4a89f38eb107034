// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages
import BatonTestSupport
import BatonTransport
import Foundation
import Logging
import SwiftProtobuf

/// An application of the user that offers a note and continues any other, as its node reaches it.
final class LocalApplication: ApplicationDelegate {
    private static let type = "org.example.note"

    private let node: ApplicationNode
    private let application: Application
    private let activity: UserActivity

    init() async throws {
        let home: Home
        (node, home) = try await ApplicationNode.start()
        application = try Application(
            Application.Description(
                identifier: "org.example.notes", name: "Notes", team: "T1",
                continues: [ContinuedActivityType(Self.type)]),
            home: home, logger: Logger(label: "attack") { _ in SwiftLogNoOpLogHandler() })
        activity = try UserActivity(activityType: Self.type, application: application)
        application.delegate = self
        application.start()
        activity.title = "Note"
        activity.becomeCurrent()
        let node = node
        try await eventually("it offers its note") { await node.offered.count == 1 }
    }

    func application(
        _ application: Application, continue activity: UserActivity, restorationHandler: RestorationHandler
    ) async -> Bool { true }

    /// All that a node asks of it.
    var requests: [(name: String, kind: WireRequest.OneOf_Kind)] {
        get async {
            let activity = await node.offered.first?.request.activityID ?? Data()
            return [
                ("willSave", .willSave(.with { $0.activityID = activity })),
                (
                    "willContinue",
                    .willContinue(
                        .with {
                            $0.handoffID = Data([1])
                            $0.type = Self.type
                        })
                ),
                (
                    "continueActivity",
                    .continueActivity(
                        .with {
                            $0.handoffID = Data([1])
                            $0.payload.summary.type = Self.type
                        })
                ),
                ("didFail", .didFail(.with { $0.handoffID = Data([2]) })),
            ]
        }
    }

    /// Serves a request as the application serves its node.
    @Sendable func serve(_ request: WireRequest.OneOf_Kind, on stream: BatonTransport.Stream) async throws {
        try await stream.respond(try await node.ask(request).answer)
    }

    func close() async {
        await application.close()
        await node.stop()
    }
}
