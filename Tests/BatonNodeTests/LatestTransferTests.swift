// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonMessages
import BatonProtocol
import BatonTransport
import SwiftProtobuf
import Testing

@testable import BatonNode

@Suite("How far the document of a handoff is")
struct LatestTransferTests {
    private let start = Instant(nanoseconds: 0)

    private func progress(_ bytes: UInt64) -> WireAcceptEvent.OneOf_Kind {
        .progress(
            .with {
                $0.bytes = bytes
                $0.total = 1000
            })
    }

    @Test("It waits from an interruption on until more of it comes, whatever is repeated meanwhile")
    func waiting() {
        var transfer = LatestTransfer()
        #expect(transfer.state == .starting && transfer.progress == nil)
        transfer.note(progress(0), now: start)
        transfer.note(progress(500), now: start + .seconds(1))
        #expect(transfer.state == .running && transfer.progress?.rate(now: start + .seconds(1)) == 500)
        // What is kept is less than what had come.
        transfer.noteEnd(keeping: 400, now: start + .seconds(1))
        transfer.note(
            .interrupted(
                .with {
                    $0.keptBytes = 400
                    $0.waitsSeconds = 600
                }), now: start + .seconds(1))
        transfer.note(progress(400), now: start + .seconds(2))
        #expect(transfer.state == .waiting && transfer.progress?.bytes == 400)
        transfer.note(progress(401), now: start + .seconds(3))
        #expect(transfer.state == .running && !transfer.isOver)
        // It has changed, and goes on at once.
        transfer.note(.interrupted(.init()), now: start + .seconds(3))
        #expect(transfer.state == .running)
        transfer.note(.failed(.init()), now: start + .seconds(3))
        #expect(transfer.isOver)
    }
}
