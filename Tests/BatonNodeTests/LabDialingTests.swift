// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

@testable import BatonNode

extension LabHandoffTests {
    /// How long a node tries to reach another: ``NodeLimits/dialDeadline``.
    ///
    /// In the other suite, so that only one lab of theirs is there at a time.
    @Suite(.timeLimit(.minutes(3)))
    struct LabDialingTests {
        @Test("A device whose address answers nothing is given up when dialling has had its time, and not before")
        func silentAddress() async throws {
            let lab = try await HandoffLab()
            defer { lab.down() }
            _ = try await lab.startNodes()
            let offer = try await lab.offer(1, "--url", "https://example.org/1", "--title", "Page")
            try await lab.watch(2).listed("Page")
            // Pulled, and nobody says that there is none: packets go where nobody takes them.
            try lab.lab.command("link", "1", "down")
            let neighbour = try lab.startProgram(
                2,
                [
                    "ip", "neigh", "replace", "10.77.0.1", "lladdr", "02:00:00:00:00:01", "nud", "permanent", "dev",
                    "eth0",
                ])
            #expect(try await neighbour.end().status == 0, "\(neighbour.errors)")
            let began = ContinuousClock.now
            let accepted = try await lab.run(2, "accept", "--print", offer.id)
            let time = ContinuousClock.now - began
            let deadline = NodeLimits().dialDeadline
            #expect(accepted.status != 0 && accepted.errors.contains("laptop"), "\(accepted.errors)")
            #expect(time >= deadline && time < deadline + .seconds(10), "\(time)")
            // A dial without success holds nothing.
            try lab.lab.command("link", "1", "up")
            let repaired = try lab.startProgram(2, ["ip", "neigh", "del", "10.77.0.1", "dev", "eth0"])
            #expect(try await repaired.end().status == 0, "\(repaired.errors)")
            try await eventually("it is taken", within: .seconds(60)) {
                try await lab.run(2, "accept", "--print", offer.id).status == 0
            }
            try await offer.command.end(by: SIGTERM)
        }

        @Test("What a device offers that has moved since is taken over by a new connection, and not by the old one")
        func movedDevice() async throws {
            let lab = try await HandoffLab()
            defer { lab.down() }
            _ = try await lab.startNodes()
            let watch = try lab.watch(2)
            let first = try await lab.offer(1, "--url", "https://example.org/1", "--title", "First")
            try await watch.listed("First")
            #expect(try await lab.run(2, "accept", "--print", first.id).status == 0)
            // From now on there is a connection, and its other end is where nobody is any more.
            let address = try await lab.move(1)
            try await eventually("it is announced") {
                try await lab.run(2, "devices", "--json").lines.contains { $0.contains(address) }
            }
            let began = ContinuousClock.now
            let accepted = try await lab.run(2, "accept", "--print", first.id)
            let time = ContinuousClock.now - began
            print("after another address was announced: \(time)")
            #expect(accepted.lines == ["https://example.org/1"], "\(accepted.errors)")
            // The old one is found to be dead some 15 s later.
            #expect(time < .seconds(10))
            try await first.command.end(by: SIGTERM)
        }

        @Test("Who has heard of the period before and not of this one reaches a device at the port of that one")
        func olderPeriod() async throws {
            let lab = try await HandoffLab()
            defer { lab.down() }
            _ = try await lab.startNodes()
            let port = try await lab.status(1)?.port
            let offer = try await lab.offer(1, "--url", "https://example.org/1", "--title", "Page")
            try await lab.watch(2).listed("Page")
            #expect(try await lab.status(1)?.port == port)
            // It hears nothing more, and believes what it has heard for as long as that counts.
            try lab.lab.command("avahi", "2", "stop")
            let change = try lab.startProgram(1, ["ip", "address", "add", "10.78.0.1/24", "dev", "eth0"])
            #expect(try await change.end().status == 0, "\(change.errors)")
            try await eventually("there is another period") { try await lab.status(1)?.port != port }
            let status = try await lab.run(2, "status").lines
            #expect(status.contains { $0.hasPrefix("connections") && $0.hasSuffix(" 0") }, "\(status)")
            let accepted = try await lab.run(2, "accept", "--print", offer.id)
            #expect(accepted.lines == ["https://example.org/1"], "\(accepted.errors)")
            try await offer.command.end(by: SIGTERM)
        }
    }
}
