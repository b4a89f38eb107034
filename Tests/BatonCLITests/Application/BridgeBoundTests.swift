// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonTestSupport
import BatonTransport
import Foundation
import Glibc
import SystemPackage
import Testing

@testable import BatonCLI

/// The most that the bridge keeps for a program that does not read or answer.
@Suite("The bounds of baton application", .timeLimit(.minutes(1)))
struct BridgeBoundTests {
    private static func application() throws -> Application {
        try Application(
            Application.Description(identifier: "org.example.editor"),
            home: Home(environment: ["BATON_HOME": "/nonexistent"]))
    }

    @Test("a program that does not read is waited for until the bound, and then given up")
    func unread() async throws {
        signal(SIGPIPE, SIG_IGN)
        let pipe = try FileDescriptor.pipe()
        let (troubles, trouble) = AsyncStream<CommandError>.makeStream(bufferingPolicy: .bufferingOldest(1))
        let printer = BridgePrinter(to: try ByteChannel(pipe.writeEnd)) { trouble.yield($0) }
        // One event fills the pipe and blocks. The others wait.
        let large = BridgeEvent.data(stream: "s", Data(count: 1 << 17))
        let tasks = (0...BridgePrinter.bound).map { _ in Task { await printer.print(large) } }
        let error = await troubles.first { _ in true }
        #expect(error?.message.contains("has not read \(BridgePrinter.bound)") == true)
        try pipe.readEnd.close()
        for task in tasks { await task.value }
        try pipe.writeEnd.close()
    }

    @Test("as many questions wait as the bound allows; of one more the activity is declined at once")
    func questions() async throws {
        let null = try FileDescriptor.open("/dev/null", .writeOnly)
        let application = try Self.application()
        let bridge = Bridge(application: application, printer: BridgePrinter(to: try ByteChannel(null)) { _ in })
        let asked = (0..<Bridge.questionBound).map { _ in
            Task { await bridge.application(application, willContinueUserActivityWithType: "a") }
        }
        #expect(await eventually { await bridge.questions.count == Bridge.questionBound })
        #expect(
            await bridge.application(application, willContinueUserActivityWithType: "a")
                == .refused("it did not answer"))
        // A caller that has waited long enough cancels, and the question is forgotten.
        asked[0].cancel()
        #expect(await asked[0].value == .refused("it did not answer"))
        #expect(await bridge.questions.count == Bridge.questionBound - 1)
        for task in asked { task.cancel() }
        for task in asked { _ = await task.value }
        #expect(await bridge.questions.isEmpty)
        try null.close()
    }
}
