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

    @Test("The count of bytes over the link in all attempts never becomes less, whenever it is asked for")
    func received() async {
        let latest = LatestProgress()
        let attempts = 20_000
        let setting = Task.detached {
            for _ in 0..<attempts {
                let report = TransferReport(of: 100)
                latest.set(report)
                report.add(received: 1)
            }
        }
        let falls = await Task.detached {
            var (last, falls): (UInt64, Int) = (0, 0)
            while last < attempts {
                let now = latest.received
                if now < last { falls += 1 }
                last = max(last, now)
            }
            return falls
        }.value
        await setting.value
        #expect(falls == 0 && latest.received == UInt64(attempts))
    }

    @Test("What is told again without news says what is waited for by then")
    func toldAgain() async throws {
        let report = TransferReport(of: 100)
        report.advance(to: 10)
        report.note(link: .zero, disk: .seconds(1), processor: .zero)
        let latest = LatestProgress()
        latest.set(report)
        #expect(report.progress().bottleneck == .diskHere)
        report.begin(.link, now: Instant(nanoseconds: 0))
        let (told, tell) = AsyncStream<WireProgressReport>.makeStream()
        await latest.repeating(
            { tell.yield($0) },
            during: {
                let first = await told.first { _ in true }
                #expect(first?.bottleneck == .link && first?.bytes == 10)
                // Nor what has been lost since.
                latest.end(keeping: 4)
                let later = await told.first { $0.bytes != 10 }
                #expect(later?.bytes == 4 && later?.keptBytes == 4 && latest.kept == 4)
                // That more was there is what the attempts are measured by.
                #expect(latest.bytes == 10)
            })
    }
}
