// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Subprocess
import SystemPackage

/// The built command, run as a process.
enum BuiltCommand {
    struct Result: Sendable {
        let status: Int32
        let output: String
        let errors: String
    }

    /// The command is in the same folder as the tests.
    static let path: FilePath = {
        let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        let folder = FilePath(FileManager.default.currentDirectoryPath)
        let beside = folder.pushing(FilePath(CommandLine.arguments[0])).removingLastComponent().appending("baton")
        if FileManager.default.fileExists(atPath: beside.string) { return beside }
        return FilePath(tests).removingLastComponent().appending("baton")
    }()

    /// - Parameters:
    ///   - home: the value of `BATON_HOME`. By default the folder does not exist.
    ///   - environment: further variables.
    static func run(
        _ arguments: [String], home: String = "/nonexistent/baton", input: String = "", in folder: String = "/",
        environment: [String: String] = [:]
    ) async throws -> Result {
        var variables: [Environment.Key: String?] = ["BATON_HOME": home, "SWIFT_BACKTRACE": "enable=no"]
        for (name, value) in environment { variables[Environment.Key(stringLiteral: name)] = value }
        let result = try await Subprocess.run(
            .path(path), arguments: Arguments(arguments),
            environment: .inherit.updating(variables),
            workingDirectory: FilePath(folder), input: .string(input), output: .string(limit: 16 << 20),
            error: .string(limit: 1 << 20))
        let status: Int32 =
            switch result.terminationStatus {
            case .exited(let code): code
            case .signaled(let signal): 128 + signal
            }
        return Result(status: status, output: result.standardOutput, errors: result.standardError)
    }
}
