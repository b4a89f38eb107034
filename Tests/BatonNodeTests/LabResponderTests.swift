import BatonTestSupport
import Foundation
import Testing

/// What a node sees of the others after its machine's Avahi was killed and started again.
@Suite(
    .serialized, .enabled(if: Lab.unavailableReason == nil, "\(Lab.unavailableReason ?? "")"), .timeLimit(.minutes(5)))
struct LabResponderTests {
    @Test("Who announces the same as before is followed again, and what it offers later is seen")
    func startedAnew() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let first = try await lab.offer(1, "--url", "https://example.org/first", "--title", "First")
        let watch = try lab.watch(2)
        try await watch.listed("First")
        try lab.lab.command("avahi", "2", "kill")
        try await eventually("it is noticed") { try await lab.status(2)?.responder?.hasPrefix("unavailable") == true }
        try lab.lab.command("avahi", "2", "start")
        try await eventually("it runs again", within: .seconds(60)) {
            try await lab.status(2)?.responder == "running"
        }
        // The record of the other device is heard anew, unchanged; only then does it change.
        try await lab.awaitPeers(1, on: 2)
        let second = try await lab.offer(1, "--url", "https://example.org/second", "--title", "Second")
        try await watch.listed("Second")
        for offer in [first, second] { try await offer.command.end(by: SIGTERM) }
    }
}
