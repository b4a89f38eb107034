// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// `baton application` on a lab host: an application that the test plays.
struct LabApplication {
    /// The example program in Python.
    static let client = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../../Sources/Examples/PythonClient/client.py").standardizedFileURL.path

    let command: HostCommand

    init(_ lab: HandoffLab, on host: Int, _ manifest: URL, home: URL? = nil) async throws {
        command = try lab.start(host, "application", "--manifest", manifest.path, home: home)
        try await event("ready")
        try await event("node") { $0.state == "connected" }
    }

    /// Sends a message: a JSON object without its braces.
    func send(_ members: String) {
        command.program.send("{\(members)}")
    }

    /// Offers an activity.
    func offer(_ name: String, _ more: String = "") {
        send(#""do":"becomeCurrent","activity":"\#(name)","type":"\#(LabManifest.type)","title":"\#(name)"\#(more)"#)
    }

    /// Waits for an event.
    @discardableResult
    func event(
        _ name: String, within timeout: Duration = .seconds(40), where isWanted: (BridgeLine) -> Bool = { _ in true }
    ) async throws -> BridgeLine {
        try await BridgeLine.wait(for: name, of: command, within: timeout, where: isWanted)
    }

    /// Waits for whichever of two events comes, the newest where there are several.
    func event(
        _ name: String, or other: String, where isWanted: (BridgeLine) -> Bool
    ) async throws -> BridgeLine {
        try await command.program.line(within: .seconds(40)) { line in
            guard let event = BridgeLine(line) else { return false }
            return [name, other].contains(event.event) && isWanted(event)
        }
        return try #require(events.last { [name, other].contains($0.event) && isWanted($0) })
    }

    /// All that it was told so far.
    var events: [BridgeLine] { command.program.lines.compactMap(BridgeLine.init) }

    func count(_ name: String) -> Int { events.count { $0.event == name } }

    /// Takes an activity that has come.
    ///
    /// - Parameter nth: which of the activities that it was given, from 1.
    @discardableResult
    func `continue`(nth: Int = 1) async throws -> BridgeLine {
        let activity = try await self.nth("continue", nth)
        send(#""do":"continued","request":\#(activity.request ?? 0)"#)
        return activity
    }

    /// Agrees to what is on its way, or answers otherwise.
    func agree(nth: Int = 1, _ more: String = "") async throws {
        let question = try await self.nth("willContinue", nth)
        send(#""do":"willContinue","request":\#(question.request ?? 0)\#(more)"#)
    }

    /// Saves what it is asked for.
    func save(nth: Int = 1, page: Int = 2) async throws {
        let question = try await self.nth("willSave", nth)
        send(#""do":"saved","request":\#(question.request ?? 0),"userInfo":{"page":\#(page)}"#)
    }

    /// Answers the nth question of a name: a message without its number.
    func answer(_ name: String, _ nth: Int, _ members: String) async throws {
        let question = try await self.nth(name, nth)
        send(#""request":\#(question.request ?? 0),"# + members)
    }

    /// The nth event of a name, from 1.
    func nth(_ name: String, _ nth: Int) async throws -> BridgeLine {
        var seen = 0
        return try await event(name) { _ in
            seen += 1
            return seen == nth
        }
    }

    /// Ends it at once, as a crash does.
    func kill() async throws {
        try await command.end(by: SIGKILL)
    }
}

/// A line that `baton application` printed.
struct BridgeLine: Decodable {
    var event: String
    var activity, type, title, state, reason, device, message, stream, data, webpageURL: String?
    var request, code, version: Int?
    var userInfo: Info?

    struct Info: Decodable {
        /// The number under “page”.
        let page: Int?
        let isEmpty: Bool

        init(from decoder: any Decoder) throws {
            let entries = try decoder.container(keyedBy: Key.self)
            isEmpty = entries.allKeys.isEmpty
            page = try entries.decodeIfPresent(Int.self, forKey: Key("page"))
        }

        private struct Key: CodingKey {
            let stringValue: String
            var intValue: Int? { nil }
            init(_ name: String) { stringValue = name }
            init?(stringValue: String) { self.init(stringValue) }
            init?(intValue: Int) { nil }
        }
    }

    init?(_ line: String) {
        guard let event = try? JSONDecoder().decode(Self.self, from: Data(line.utf8)) else { return nil }
        self = event
    }

    struct NoEvent: Error, CustomStringConvertible {
        let description: String
    }

    /// Waits for an event that a program prints.
    static func wait(
        for name: String, of command: HostCommand, within timeout: Duration, where isWanted: (BridgeLine) -> Bool
    ) async throws -> BridgeLine {
        var found: BridgeLine?
        do {
            try await command.program.line(within: timeout) { line in
                guard let event = BridgeLine(line), event.event == name, isWanted(event) else { return false }
                found = event
                return true
            }
        } catch {
            throw NoEvent(description: "no event \(name): \(error); it said:\n\(command.errors)")
        }
        guard let found else { throw NoEvent(description: "no event \(name)") }
        return found
    }
}

/// Manifests of applications.
enum LabManifest {
    static let type = "org.example.note"

    /// Writes an `Info.plist`.
    ///
    /// - Parameter versions: that it reads, such as `1-2`.
    static func write(
        _ lab: HandoffLab, _ identifier: String, team: String = "EXAMPLE", versions: String? = nil
    ) throws -> URL {
        let file = lab.folder.appendingPathComponent(identifier + "-" + UUID().uuidString + ".plist")
        let statement = versions.map {
            "<key>BatonActivityVersions</key><dict><key>\(type)</key><string>\($0)</string></dict>"
        }
        let text = """
            <plist version="1.0"><dict>
                <key>CFBundleIdentifier</key><string>\(identifier)</string>
                <key>BatonTeam</key><string>\(team)</string>
                <key>NSUserActivityTypes</key><array><string>\(type)</string></array>
                \(statement ?? "")
            </dict></plist>
            """
        try Data(text.utf8).write(to: file)
        return file
    }
}
