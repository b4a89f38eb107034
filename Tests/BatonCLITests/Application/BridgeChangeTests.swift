// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonEventLoop
import BatonMessages
import BatonTestSupport
import Foundation
import SystemPackage
import Testing

@testable import BatonCLI

@Suite("Changes by baton application", .timeLimit(.minutes(5)))
struct BridgeChangeTests {
    @Test("A message is one change: nobody sees a part of it, nor anything of one that is refused")
    func oneChange() async throws {
        let (node, home) = try await ApplicationNode.start()
        // Changes are not coalesced, so that every state is visible for a while.
        var deadlines = ApplicationDeadlines()
        deadlines.coalescing = .zero
        let application = try Application(.init(identifier: "org.example.editor"), home: home, deadlines: deadlines)
        let null = try FileDescriptor.open("/dev/null", .writeOnly)
        let bridge = Bridge(application: application, printer: BridgePrinter(to: try ByteChannel(null)) { _ in })
        await bridge.start()
        func send(_ members: String) async { await bridge.handle(.text(Array("{\(members)}".utf8)), number: 1) }
        // These lie between the title and the document, and take long to compare.
        let entries = (0..<400).map { #""entry \#($0)":"\#($0)""# }.joined(separator: ",")
        func content(_ number: Int) -> String {
            #""title":"\#(number)","userInfo":{"n":\#(number),\#(entries)},"document":"/\#(number)""#
        }
        await send(#""do":"becomeCurrent","activity":"a","type":"org.example.note","# + content(0))
        #expect(await eventually { await node.offered.count == 1 })
        // The node receives only some of the states. So a thread reads all the time, first the title: the document is
        // never older.
        let activity = try #require(await bridge.activities["a"])
        let looking = Looking {
            guard let title = activity.title.flatMap({ Int($0) }) else { return false }
            return activity.document.flatMap { Int($0.lastPathComponent) }.map { $0 < title } ?? true
        }
        var number = 0
        // A busy machine may let the thread read rarely.
        while number < 300 || looking.looks <= 300 {
            number += 1
            await send(#""do":"update","activity":"a","# + content(number))
        }
        looking.end()
        #expect(looking.seen == 0, "of \(looking.looks) looks")
        let last = String(number)
        #expect(await eventually { await node.offered.first?.latest.title == last })
        await send(#""do":"update","activity":"a","title":"bad","webpageURL":"ftp://example.org/""#)
        await send(#""do":"update","activity":"a","version":7"#)
        #expect(await eventually { await node.offered.first?.latest.version == 7 })
        let seen = try #require(await node.offers.first).updates.map(\.offer)
        #expect(seen.count > 1, "\(seen.count)")
        for state in seen {
            #expect(String(decoding: state.documentPath, as: UTF8.self) == "/" + state.title)
        }
        await bridge.close()
        try null.close()
    }

    /// Checks a condition all the time, on a thread of its own, until it is told to end.
    private final class Looking: Sendable {
        private let count = Lock((looks: 0, seen: 0))
        private let isOver = Lock(false)

        var looks: Int { count.withLock { $0.looks } }
        /// The number of times that the condition held.
        var seen: Int { count.withLock { $0.seen } }

        init(for isSeen: @escaping @Sendable () -> Bool) {
            Thread.detachNewThread { [self] in
                while !isOver.withLock({ $0 }) {
                    let isThere = isSeen()
                    count.withLock {
                        $0.looks += 1
                        if isThere { $0.seen += 1 }
                    }
                }
            }
        }

        func end() { isOver.withLock { $0 = true } }
    }
}
