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
        // Nothing is collected, so that every state is seen that there is for a while.
        var deadlines = ApplicationDeadlines()
        deadlines.coalescing = .zero
        let application = try Application(.init(identifier: "org.example.editor"), home: home, deadlines: deadlines)
        let null = try FileDescriptor.open("/dev/null", .writeOnly)
        let bridge = Bridge(application: application, printer: BridgePrinter(to: try ByteChannel(null)) { _ in })
        await bridge.start()
        func send(_ members: String) async { await bridge.take(.text(Array("{\(members)}".utf8)), number: 1) }
        // Between the title and the document, and long to compare.
        let entries = (0..<400).map { #""entry \#($0)":"\#($0)""# }.joined(separator: ",")
        func content(_ number: Int) -> String {
            #""title":"\#(number)","userInfo":{"n":\#(number),\#(entries)},"document":"/\#(number)""#
        }
        await send(#""do":"becomeCurrent","activity":"a","type":"org.example.note","# + content(0))
        #expect(await eventually { await node.offered.count == 1 })
        // What the node is sent is a few of the states that there are. Who looks all the time, first at the title,
        // finds no older document beside it.
        let activity = try #require(await bridge.activities["a"])
        let looking = Looking {
            guard let title = activity.title.flatMap({ Int($0) }) else { return false }
            return activity.document.flatMap { Int($0.lastPathComponent) }.map { $0 < title } ?? true
        }
        var number = 0
        // However seldom a busy machine lets it look.
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

    /// Looks again and again, on a thread of its own, until it ends.
    private final class Looking: Sendable {
        private let count = Lock((looks: 0, seen: 0))
        private let isOver = OneTime()

        var looks: Int { count.withLock { $0.looks } }
        /// How often there was what is looked for.
        var seen: Int { count.withLock { $0.seen } }

        init(for isSeen: @escaping @Sendable () -> Bool) {
            Thread.detachNewThread { [self] in
                while !isOver.hasHappened {
                    let isThere = isSeen()
                    count.withLock {
                        $0.looks += 1
                        if isThere { $0.seen += 1 }
                    }
                }
            }
        }

        func end() { _ = isOver.take() }
    }
}
