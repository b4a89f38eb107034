// SPDX-License-Identifier: Apache-2.0

import Baton
import Foundation
import Synchronization

/// An application several of whose threads use one document at the same time.
final class Hammering: UserActivityDelegate {
    private static let threads = 4
    /// Between two uses by one thread, so that the node has a moment for others too.
    private static let pause = 0.002

    private let application: Application
    private let document: Document
    private let files: [URL]
    private let isSettled = Mutex(false)

    init(files: [String]) throws {
        self.files = files.map { URL(fileURLWithPath: $0) }
        application = try Application(.init(identifier: "org.example.hammering", name: "Hammering", team: "EXAMPLE"))
        document = try Document(fileURL: self.files[0], activityType: Probe.type, application: application) {
            ["cursor": 42]
        }
        document.activity.delegate = self
    }

    func run(_ commands: AsyncStream<String>) async throws {
        document.becomeFront()
        let work = Task {
            await withDiscardingTaskGroup { group in
                for first in 0..<Self.threads { group.addTask { await self.thread(first) } }
            }
        }
        for await command in commands where command == "settle" {
            isSettled.withLock { $0 = true }
            await work.value
            let activity = document.activity
            Probe.say(
                "settled \(document.fileURL?.lastPathComponent ?? "nothing") \(activity.title ?? "nothing")"
                    + " \(activity.isCurrent ? "in front" : "behind")")
        }
        isSettled.withLock { $0 = true }
        await work.value
        document.close()
        await application.close()
    }

    private func thread(_ first: Int) async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [self] in
                var round = first
                while !isSettled.withLock({ $0 }) {
                    use(round)
                    round += 1
                    Thread.sleep(forTimeInterval: Self.pause)
                }
                continuation.resume()
            }
        }
    }

    private func use(_ round: Int) {
        switch round % 5 {
        case 0: document.becomeFront()
        case 1, 2: try? document.move(to: files[round % files.count])
        case 3: document.needsSave = true
        default:
            _ = document.changes.makeAsyncIterator()
            document.activity.addUserInfoEntries(from: ["round": .integer(Int64(round))])
        }
    }

    func userActivityWasContinued(_ activity: UserActivity, by device: ContinuingDevice) async {
        Probe.say("continued by \(device.name)")
    }

    func userActivity(_ activity: UserActivity, didFail error: UserActivityError) async {
        Probe.say("failed \(error)")
    }
}
