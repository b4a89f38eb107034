import BatonEventLoop
import BatonMessages
import BatonTestSupport
import BatonTransport
import Logging
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonNode

/// The moment in which one activity takes another one's place: who asks then hears of the new one.
@Suite("Activities that are replaced", .timeLimit(.minutes(1)))
struct ReplacementTests {
    @Test("After a withdrawal others wait for what takes its place, and no longer than a moment")
    func replaced() async throws {
        let loop = EventLoop(name: "offers")
        let files = SharedFiles(
            path: "/nonexistent/roots", userHome: nil, on: try BlockingExecutor(name: "files"),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let offers = Offers(on: loop, files: files) { _ in }
        let (node, application) = try await connectedPair(on: loop)
        func activity(_ title: String) throws -> OfferedActivity {
            try OfferedActivity(
                .with {
                    $0.type = "org.example.note"
                    $0.title = title
                }, document: nil)
        }
        let (first, second) = (try activity("First"), try activity("Second"))
        // Nothing was withdrawn: at once.
        await offers.replaced()
        _ = try await offers.offer(first, from: node)
        await offers.replaced()

        let clock = ContinuousClock()
        for number in 1...2 {
            // What takes its place ends the wait for all who wait.
            await offers.withdraw(first.id)
            let asked = (0..<2).map { _ in
                Task {
                    await offers.replaced()
                    return await offers.summaries.map(\.title)
                }
            }
            let offered = try activity("In its place \(number)")
            _ = try await offers.offer(offered, from: node)
            for answer in asked { #expect(await answer.value == [offered.title]) }
            await offers.withdraw(offered.id)
            _ = try await offers.offer(first, from: node)
        }

        // Nothing takes its place: others wait 100 ms from the first withdrawal on, however many follow.
        _ = try await offers.offer(second, from: node)
        let start = clock.now
        await offers.withdraw(first.id)
        await offers.withdraw(second.id)
        await offers.replaced()
        #expect(clock.now - start > .milliseconds(90))
        #expect(await offers.summaries.isEmpty)
        await offers.replaced()
        await application.close()
        await node.close()
    }
}
