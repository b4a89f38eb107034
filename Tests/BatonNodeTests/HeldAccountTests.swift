// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonNode
import BatonTestSupport
import BatonTransport
import Logging
import Testing

/// A node has its account from its start to its end.
@Suite("An account that a node runs on", .timeLimit(.minutes(5)))
struct HeldAccountTests {
    @Test("A node lets its account go when it stops, and when it cannot start")
    func letGo() async throws {
        let scratch = try ScratchFolder("hold")
        defer { scratch.remove() }
        let folder = scratch.path
        func home(_ login: String) throws -> Home {
            try Home(environment: ["HOME": folder, "XDG_RUNTIME_DIR": folder + "/" + login])
        }
        func makeNode(_ login: String, port: UInt16 = 0) throws -> Node {
            var configuration = NodeConfiguration()
            configuration.port = port
            return Node(
                home: try home(login), configuration: configuration,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        }
        let store = AccountStore(folder: AccountStore.folder(in: try home("a")))
        _ = try store.make(deviceName: "node")
        let node = try makeNode("a")
        try await node.start()
        await #expect {
            try await makeNode("b").start()
        } throws: {
            guard case .alreadyRunning(let reason)? = $0 as? NodeError else { return false }
            return reason.contains("does not listen at \(folder)/b/")
        }
        #expect(throws: AccountError.nodeRunning) { try store.refuseNode() }

        await node.stop()
        try store.refuseNode()

        let neighbour = try Home(environment: ["BATON_HOME": folder + "/neighbour"])
        _ = try AccountStore(folder: AccountStore.folder(in: neighbour)).make(deviceName: "neighbour")
        let listening = Node(home: neighbour, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await listening.start()
        let late = try makeNode("a", port: try #require(await listening.port))
        await #expect {
            try await late.start()
        } throws: {
            "\($0)".contains("in use by another program: choose another with --port")
        }
        try store.refuseNode()
        await listening.stop()
        try await late.start()
        await late.stop()
    }
}
