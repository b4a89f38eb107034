// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import SystemPackage
import Testing

/// A node as it was built, run as a process until this value goes.
final class BuiltNode: Sendable {
    private let process: ChildProcess
    private let log: String

    /// Starts it; see ``ready()``.
    ///
    /// - Parameters:
    ///   - environment: what it has beside what the tests have.
    ///   - folder: where its log is written.
    init(_ environment: [String: String], in folder: String) throws {
        log = folder + "/node-\(UUID().uuidString).log"
        process = try ChildProcess(
            [BuiltCommand.path.string, "node"],
            environment: ProcessInfo.processInfo.environment.merging(environment) { $1 }, output: .null,
            error: .file(log))
    }

    /// What it said.
    var said: String { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }

    func send(_ signal: Int32) { process.signal(signal) }

    /// Waits until it serves.
    func ready() async throws {
        try #require(await eventually { self.said.contains("ready on port") }, "\(said)")
    }

    /// Waits until it has ended, and tells how; `nil` where it has not.
    func end() async -> Int32? {
        _ = await eventually { !self.process.isRunning }
        return process.ending?.status
    }
}
