// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonEventLoop
import BatonMessages
import BatonTestSupport
import BatonTransport
import Foundation
import Logging
import SwiftProtobuf
import Testing

@testable import BatonNode

/// A program handles its offers on the local socket of a running node.
@Suite("Offers on the local socket", .timeLimit(.minutes(5)))
struct LocalOfferTests {
    /// A running node and a program.
    private final class Scene: Sendable {
        private let folder: ScratchFolder
        private let node: Node
        let program: Connection

        init() async throws {
            folder = try ScratchFolder("offers")
            let home = try Home(environment: ["BATON_HOME": folder.path])
            _ = try AccountStore(folder: AccountStore.folder(in: home)).make(deviceName: "node")
            node = Node(home: home, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            try await node.start()
            program = try await Connection.connect(toLocalSocket: home.socketPath, on: EventLoop(name: "program"))
        }

        func offer(_ id: UInt8, title: String = "", expires: Double = 0) async throws -> BatonTransport.Stream {
            try await program.request(
                .offer(
                    .with {
                        $0.type = "org.example.note"
                        $0.title = title
                        $0.activityID = Data(repeating: id, count: ActivityID.size)
                        $0.expires = expires
                    })
            ).1
        }

        /// The number of offers.
        func count() async throws -> Int {
            guard case .status(let status) = try await program.answer(to: .status(.init())) else { return -1 }
            return Int(status.offers)
        }

        func withdraw(_ id: UInt8) async throws -> String {
            let hex = ActivityID(Data(repeating: id, count: ActivityID.size))?.description ?? ""
            guard case .withdraw(let answer) = try await program.answer(to: .withdraw(.with { $0.idPrefix = hex }))
            else { return "" }
            return answer.title
        }

        func close() async {
            await program.close()
            await node.stop()
        }
    }

    @Test(
        "An activity may expire at any number of seconds; the largest ones mean never",
        arguments: [1e12, 1.7e20, 1.8e20, 1e300, .greatestFiniteMagnitude])
    func expires(_ seconds: Double) async throws {
        let scene = try await Scene()
        let offer = try await scene.offer(1, expires: seconds)
        #expect(try await scene.count() == 1)
        await offer.finish()
        await scene.close()
    }

    @Test("A value that is no point in time is refused", arguments: [-1.0, .infinity, .nan])
    func noTime(_ seconds: Double) async throws {
        let scene = try await Scene()
        let error = await #expect(throws: HandoffError.self) { _ = try await scene.offer(1, expires: seconds) }
        #expect(error?.code == .invalidRequest)
        await scene.close()
    }

    @Test("The end of an offer leaves a later offer of the same activity as it is")
    func sameActivity() async throws {
        let scene = try await Scene()
        let first = try await scene.offer(1, title: "First")
        #expect(try await scene.withdraw(1) == "First")
        let second = try await scene.offer(1, title: "Second")
        // The program ends the first one, and then asks on the same connection.
        await first.finish()
        while try await first.read() != nil {}
        // The node may have ended its side before it heard of the end.
        for _ in 0..<50 { #expect(try await scene.count() == 1) }
        #expect(try await scene.withdraw(1) == "Second")
        while try await second.read() != nil {}
        await scene.close()
    }

    @Test("An update of an offer that has ended changes no later offer of the same activity")
    func lateUpdate() async throws {
        let scene = try await Scene()
        let first = try await scene.offer(1, title: "First")
        #expect(try await scene.withdraw(1) == "First")
        let second = try await scene.offer(1, title: "Second")
        try await first.send(
            record: WireOfferUpdate.with {
                $0.offer.type = "org.example.note"
                $0.offer.title = "Third"
            })
        await first.finish()
        while try await first.read() != nil {}
        for _ in 0..<50 { #expect(try await scene.count() == 1) }
        #expect(try await scene.withdraw(1) == "Second")
        withExtendedLifetime(second) {}
        await scene.close()
    }
}
