// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// Applications that change more often than a device may announce: what others list, and what they get.
@Suite(.serialized, .lab, .timeLimit(.minutes(3)))
struct LabBurstTests {
    /// Makes thirty activities current, one after the other, within 3 s.
    private func burst(_ origin: LabApplication, _ name: String) async throws -> String {
        let clock = ContinuousClock()
        let start = clock.now
        for number in 0..<30 {
            origin.offer("\(name)-\(number)", #","userInfo":{"page":\#(number)}"#)
            try await clock.sleep(until: start + .milliseconds(100 * (number + 1)))
        }
        return "\(name)-29"
    }

    private func titles(_ lab: HandoffLab) async throws -> [String?] {
        try await lab.run(2, "activities", "--json").events.map(\.title)
    }

    @Test("Thirty changes in 3 s: a moment later the list is the present one, and accept --latest never finds nothing")
    func bursts() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Quiet")
        let watch = try lab.watch(2)
        try await watch.listed("Quiet")
        let quiet = try #require(try await lab.run(2, "activities", "--json").events.first?.id)

        // A device that takes it over asks for the state.
        let saving = Task { for number in 1... { try await origin.save(nth: number, page: number) } }
        defer { saving.cancel() }
        for name in ["A", "B"] {
            let isOver = Flag()
            let accepting = Task {
                var accepts: [HostCommand.Finished] = []
                while await !isOver.isSet {
                    accepts.append(try await lab.run(2, "accept", "--latest", "--print", "--json"))
                }
                return accepts
            }
            let last = try await burst(origin, name)
            try await eventually("the present one is listed", within: .seconds(1)) { try await titles(lab) == [last] }
            try await eventually("who watches is told", within: .seconds(3)) {
                let told = watch.events.filter { $0.title == last }
                return told.last.map { ["present", "added", "updated"].contains($0.event) } ?? false
            }
            await isOver.set()
            let accepts = try await accepting.value
            #expect(!accepts.isEmpty)
            for accept in accepts { #expect(accept.status == 0, "\(accept.lines) \(accept.errors)") }
        }

        // By its id, of which the user was told: what became of it.
        let replaced = try await lab.run(2, "accept", quiet)
        #expect(replaced.status == 66)
        #expect(replaced.errors.contains("laptop no longer offers Quiet; it offers B-29 now"), "\(replaced.errors)")
    }

    @Test("Applications killed together, and switching on and off, are seen within 2 s, however busy it was before")
    func ends() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        var origins: [LabApplication] = []
        for name in ["first", "second", "third"] {
            origins.append(try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example." + name)))
        }
        let watch = try lab.watch(2)
        _ = try await burst(origins[0], "Busy")
        for (index, origin) in origins.enumerated() { origin.offer("Last-\(index)") }
        try await eventually("all are listed") { Set(try await titles(lab)) == ["Last-0", "Last-1", "Last-2"] }
        for index in origins.indices { try await watch.listed("Last-\(index)") }

        for number in 1...3 {
            for isOn in [false, true] {
                origins[2].send(#""do":"update","activity":"Last-2","isEligibleForHandoff":\#(isOn)"#)
                try await eventually("switched \(isOn), time \(number)", within: .seconds(2)) {
                    try await titles(lab).contains("Last-2") == isOn
                }
            }
        }

        let killed = Date()
        for origin in origins { origin.command.program.signal(SIGKILL) }
        for index in origins.indices {
            try await eventually("the list has lost it") {
                watch.events.last { $0.title == "Last-\(index)" }?.event == "removed"
            }
            let removed = watch.events.last { $0.title == "Last-\(index)" }
            #expect(try #require(removed?.moment).timeIntervalSince(killed) < 2, "Last-\(index)")
        }
        #expect(try await titles(lab) == [])
    }
}

/// Set once.
private actor Flag {
    private(set) var isSet = false

    func set() { isSet = true }
}

extension LabEvent {
    /// When it was told, by the clock of the command that tells it.
    var moment: Date? {
        let formatter = ISO8601DateFormatter()
        formatter.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
        return time.flatMap(formatter.date(from:))
    }
}
