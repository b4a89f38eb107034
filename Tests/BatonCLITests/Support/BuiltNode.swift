import BatonTestSupport
import Foundation
import SystemPackage
import Testing

/// A node as it was built, run as a process until this value goes.
final class BuiltNode: Sendable {
    private let process = Process()
    private let log: String

    /// Starts it; see ``ready()``.
    ///
    /// - Parameters:
    ///   - environment: what it has beside what the tests have.
    ///   - folder: where its log is written.
    init(_ environment: [String: String], in folder: String) throws {
        log = folder + "/node-\(UUID().uuidString).log"
        _ = FileManager.default.createFile(atPath: log, contents: nil)
        process.executableURL = URL(filePath: BuiltCommand.path.string)
        process.arguments = ["node"]
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = try FileHandle(forWritingTo: URL(filePath: log))
        try Process.spawning { try process.run() }
    }

    deinit { if process.isRunning { send(SIGKILL) } }

    /// What it said.
    var said: String { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }

    func send(_ signal: Int32) { kill(process.processIdentifier, signal) }

    /// Waits until it serves.
    func ready() async throws {
        try #require(await eventually { self.said.contains("ready on port") }, "\(said)")
    }

    /// Waits until it has ended, and tells how; `nil` where it has not.
    func end() async -> Int32? {
        await eventually { !self.process.isRunning } ? process.terminationStatus : nil
    }
}
