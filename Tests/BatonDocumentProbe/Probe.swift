// SPDX-License-Identifier: Apache-2.0

import Baton
import Foundation
import Synchronization

/// An application with a document as a program, so that tests can put it on a lab host.
///
/// `document-probe offer FILE [KEY=PATH...]` makes a document current, with a cursor and further file URLs in its user
/// info; lines `resign`, `front` and `close` are done with it. `document-probe continue FOLDER OFFSET LENGTH` continues
/// one: it reads that range into `FOLDER/range` as soon as some of the file has come, and then waits for the whole.
/// `document-probe hammer FILE FILE` offers a document that threads move between two files, edit, watch and bring to
/// the front all the time, until a line `settle`. Each says what happens in a line, and ends with its standard input.
@main
enum Probe {
    static let type = "org.example.document"

    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        switch arguments.first {
        case "offer":
            let offering = try Offering(file: arguments[1], urls: Array(arguments.dropFirst(2)))
            offering.document.becomeFront()
            for await command in commands() { offering.obey(command) }
            offering.document.close()
            await offering.application.close()
        case "hammer":
            try await Hammering(files: Array(arguments.dropFirst())).run(commands())
        case "continue":
            let application = try Application(
                .init(
                    identifier: "org.example.continuing", name: "Continuing", team: "EXAMPLE",
                    continues: [try ContinuedActivityType(type)]))
            let continuing = Continuing(
                folder: arguments[1], offset: UInt64(arguments[2]) ?? 0, length: Int(arguments[3]) ?? 0)
            application.delegate = continuing
            application.start()
            for await state in application.nodeState where state == .connected { break }
            say("connected")
            await endOfInput()
            await application.close()
            withExtendedLifetime(continuing) {}
        default:
            say("offer, hammer or continue")
        }
    }

    static func say(_ line: String) {
        try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8))
    }

    /// The lines of standard input, read on a thread of its own: reading blocks.
    private static func commands() -> AsyncStream<String> {
        let (lines, line) = AsyncStream<String>.makeStream()
        Thread.detachNewThread {
            while let next = readLine() { line.yield(next) }
            line.finish()
        }
        return lines
    }

    private static func endOfInput() async {
        for await _ in commands() {}
    }
}

/// The application that has the document.
final class Offering: UserActivityDelegate {
    let application: Application
    let document: Document

    init(file: String, urls: [String]) throws {
        application = try Application(.init(identifier: "org.example.offering", name: "Offering", team: "EXAMPLE"))
        var state = UserInfo(["cursor": 42])
        for entry in urls {
            let parts = entry.split(separator: "=", maxSplits: 1).map(String.init)
            state[parts[0]] = .url(URL(fileURLWithPath: parts[1]))
        }
        let saved = state
        document = try Document(
            fileURL: URL(fileURLWithPath: file), activityType: Probe.type, application: application
        ) {
            Probe.say("saving")
            return saved
        }
        document.activity.delegate = self
    }

    func obey(_ command: String) {
        switch command {
        case "resign": document.resignFront()
        case "front": document.becomeFront()
        case "close": document.close()
        default: Probe.say("resign, front or close")
        }
        let activity = document.activity
        Probe.say("\(command): \(activity.isInvalidated ? "closed" : activity.isCurrent ? "in front" : "behind")")
    }

    func userActivityWasContinued(_ activity: UserActivity, by device: ContinuingDevice) async {
        Probe.say("continued by \(device.name)")
    }

    func userActivity(_ activity: UserActivity, didFail error: UserActivityError) async {
        Probe.say("failed \(error)")
    }
}

/// The application that continues it.
final class Continuing: ApplicationDelegate, UserActivityRestoring {
    private let folder: String
    private let offset: UInt64
    private let length: Int
    private let opened = Mutex<Document?>(nil)
    /// Bytes of the document that have come so far.
    private let received = Mutex<UInt64>(0)

    init(folder: String, offset: UInt64, length: Int) {
        self.folder = folder
        self.offset = offset
        self.length = length
    }

    func application(_ application: Application, open document: Document) async -> (any UserActivityRestoring)? {
        opened.withLock { $0 = document }
        Probe.say("opened \(document.size ?? 0)")
        Task {
            do {
                // The whole is under way, so that the range has to overtake it.
                let (changes, all) = (document.changes, document.changes)
                Task { await follow(all) }
                if document.fileURL == nil { await Self.begun(changes) }
                let started = ContinuousClock.now
                let data = try await document.read(at: offset, length: length)
                try data.write(to: URL(fileURLWithPath: folder + "/range"))
                Probe.say("behind \(received.withLock(\.self)) bytes of the document")
                let taken = (ContinuousClock.now - started) / .milliseconds(1)
                Probe.say(
                    "read \(data.count) bytes in \(Int(taken)) ms, \(document.fileURL == nil ? "early" : "local")")
                let file = try await document.arrived()
                Probe.say("arrived \(file.path)")
                Probe.say("title \(document.activity.title ?? "")")
                for (key, value) in document.activity.userInfo.entries.sorted(by: { $0.key < $1.key }) {
                    guard case .url(let url) = value else { continue }
                    Probe.say("url \(key) \(url.absoluteString) \(await mayUse(url, application))")
                }
                Probe.say("passwd \(await mayUse(URL(fileURLWithPath: "/etc/passwd"), application))")
                let again = try await document.read(at: offset, length: length)
                Probe.say("again \(again == data)")
            } catch {
                Probe.say("failed \(error)")
            }
        }
        return self
    }

    private static func begun(_ changes: AsyncStream<Document.Change>) async {
        for await change in changes {
            switch change {
            case .progress(let received, _) where received > 0: return
            case .arrived, .failed, .closed: return
            case .progress, .becameFront, .resignedFront, .stateChanged: continue
            }
        }
    }

    private func follow(_ changes: AsyncStream<Document.Change>) async {
        for await case .progress(let bytes, _) in changes { received.withLock { $0 = bytes } }
    }

    private func mayUse(_ url: URL, _ application: Application) async -> String {
        do {
            _ = try await application.startAccessing(url)
            return "allowed"
        } catch {
            return error.code == .accessRefused ? "refused" : "failed \(error)"
        }
    }

    func restoreUserActivityState(_ activity: UserActivity) async {
        Probe.say("restored cursor \(activity.userInfo["cursor"] == 42)")
    }

    func application(
        _ application: Application, didFailToContinueUserActivityWithType type: String, error: UserActivityError
    ) async {
        Probe.say("did fail \(error.code.rawValue) \(error)")
    }
}
