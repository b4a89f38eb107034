// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation

/// `discovery-probe` on a lab host.
struct Probe {
    /// One line of its output.
    struct Event: Decodable {
        var event: String
        var time: UInt64?
        var instance: String?
        var interface: UInt32?
        var txt: String?
        var state: String?
        var reason: String?
        var kept: Int?
        var probing: Int?
    }

    private let program: LabProgram

    init(_ lab: Lab, _ host: Int, _ options: String...) throws {
        // Fresh memory is filled with a pattern, so that the library's uninitialised struct would be found for certain,
        // and not only when the heap happens to be dirty.
        program = try lab.start(host, ["env", "MALLOC_PERTURB_=90", Lab.product("discovery-probe")] + options)
    }

    var isRunning: Bool { program.isRunning }

    func send(_ command: String) { program.send(command) }

    func signal(_ number: Int32) { program.signal(number) }

    func end() async throws -> Int32 { try await program.end() }

    /// Every event of a kind so far.
    func all(_ kind: String) -> [Event] {
        program.lines.compactMap { Self.parse($0) }.filter { $0.event == kind }
    }

    /// Waits for an event of a kind, the first one unless `number` says another.
    @discardableResult
    func event(_ kind: String, number: Int = 1, within timeout: Duration = .seconds(20)) async throws -> Event {
        try await event(number: number, within: timeout) { $0.event == kind }
    }

    /// Waits until a record is told.
    @discardableResult
    func record(_ txt: String, within timeout: Duration = .seconds(20)) async throws -> Event {
        try await event(within: timeout) { $0.event == "record" && $0.txt == txt }
    }

    /// Waits until the responder is away, for a reason that says this.
    func unavailable(because reason: String = "") async throws {
        _ = try await event { $0.state == "unavailable" && ($0.reason ?? "").hasPrefix(reason) }
    }

    /// Waits until the responder has come for the given time.
    func running(times: Int) async throws {
        _ = try await event(number: times, within: .seconds(60)) { $0.state == "running" }
    }

    private func event(
        number: Int = 1, within timeout: Duration = .seconds(20), where isWanted: (Event) -> Bool
    ) async throws -> Event {
        var (start, found) = (0, Event(event: ""))
        for _ in 0..<number {
            let line = try await program.line(from: start, within: timeout) {
                Self.parse($0).map(isWanted) ?? false
            }
            start = line.index + 1
            if let event = Self.parse(line.text) { found = event }
        }
        return found
    }

    private static func parse(_ line: String) -> Event? {
        try? JSONDecoder().decode(Event.self, from: Data(line.utf8))
    }
}
