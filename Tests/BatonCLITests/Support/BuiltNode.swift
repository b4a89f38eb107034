// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import SystemPackage
import Testing

/// The built node, run as a process for as long as this object lives.
final class BuiltNode: Sendable {
    private let process: ChildProcess
    private let log: String

    /// Starts the node. Wait for ``ready()``.
    ///
    /// - Parameters:
    ///   - environment: variables in addition to those of the tests.
    ///   - arguments: its options.
    ///   - folder: the folder of its log.
    init(_ environment: [String: String], _ arguments: [String] = [], in folder: String) throws {
        log = folder + "/node-\(UUID().uuidString).log"
        process = try ChildProcess(
            [BuiltCommand.path.string, "node"] + arguments,
            environment: ProcessInfo.processInfo.environment.merging(environment) { $1 }, output: .null,
            error: .file(log))
    }

    /// Its log.
    var said: String { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }

    func send(_ signal: Int32) { process.signal(signal) }

    /// Waits until the node is ready.
    func ready() async throws {
        try #require(await eventually { self.said.contains("ready on port") }, "\(said)")
    }

    /// Waits for the end of the node, and returns its status; `nil` if it has not ended.
    func end() async -> Int32? {
        _ = await eventually { !self.process.isRunning }
        return process.ending?.status
    }
}
