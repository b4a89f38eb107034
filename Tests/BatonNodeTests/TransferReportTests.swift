// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonMessages
import BatonProtocol
import BatonTransport
import Testing

@testable import BatonNode

@Suite("What is known of a transfer", .timeLimit(.minutes(5)))
struct TransferReportTests {
    @Test("The other device's reports count for as long as it says anything")
    func hearsay() {
        #expect(TransferReport.hearsayLife == .seconds(3))
        let start = Instant.now
        let report = TransferReport(of: 100)
        report.begin(.link, now: start)
        report.hear(.disk, now: start + .seconds(2))
        #expect(report.progress(now: start + .milliseconds(4990)).bottleneck == .diskThere)
        #expect(report.progress(now: start + .seconds(5)).bottleneck == .link)
        report.hear(.disk, now: start + .seconds(5))
        #expect(report.progress(now: start + .seconds(6)).bottleneck == .diskThere)
    }

    @Test("What is told again without news says what is waited for by then")
    func toldAgain() async throws {
        let report = TransferReport(of: 100)
        report.advance(to: 10)
        report.note(link: .zero, disk: .seconds(1), processor: .zero)
        #expect(report.tell().bottleneck == .diskHere)
        report.begin(.link, now: Instant(nanoseconds: 0))
        let (told, tell) = AsyncStream<WireProgressReport>.makeStream()
        await report.repeating(
            { tell.yield($0) },
            during: {
                let first = await told.first { _ in true }
                #expect(first?.bottleneck == .link && first?.bytes == 10)
                // Nor what has been lost since.
                report.end(keeping: 4)
                let later = await told.first { $0.bytes != 10 }
                #expect(later?.bytes == 4 && later?.keptBytes == 4 && report.kept == 4)
                // That more was there is what the attempts are measured by.
                #expect(report.toldBytes == 10)
            })
    }

    @Test("What came over the link counts over all attempts, and what was there before does not")
    func attempts() {
        let report = TransferReport()
        for (size, resumed) in [(100, 0), (100, 30), (50, 0)] as [(UInt64, UInt64)] {
            report.begin(of: size, resumed: resumed)
            report.add(received: 7)
            let told = report.tell()
            #expect((told.total, told.bytes, told.resumedBytes) == (size, resumed, resumed))
            #expect(report.transfer?.total == size && report.transfer?.bytes == resumed && !told.hasKeptBytes)
        }
        #expect(report.received == 21)
    }
}
