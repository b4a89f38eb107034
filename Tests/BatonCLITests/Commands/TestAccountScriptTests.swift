// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonTestSupport
import Foundation
import Subprocess
import Testing

import struct SystemPackage.FilePath

/// `Certificates/make-test-account`.
@Suite("The script that makes an account for tests", .timeLimit(.minutes(2)))
struct TestAccountScriptTests {
    private static let script = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Certificates/make-test-account").path
    private let folder: ScratchFolder

    init() throws {
        folder = try ScratchFolder("script")
    }

    /// Runs the script in the folder.
    private func run(_ arguments: String..., baton: String = BuiltCommand.path.string) async throws -> Int32? {
        let result = try await Subprocess.run(
            .path(FilePath(Self.script)), arguments: Arguments(arguments),
            environment: .inherit.updating(["BATON": baton]), workingDirectory: folder.filePath, output: .discarded,
            error: .discarded)
        guard case .exited(let status) = result.terminationStatus else { return nil }
        return status
    }

    @Test("Its devices are of one account, and nobody has the key")
    func devices() async throws {
        #expect(try await run("account", "3") == 0)
        let accounts = try (1...3).map { number in
            try AccountStore(folder: FilePath("\(folder.path)/account/device-\(number)/state/account")).load()
        }
        #expect(Set(accounts.map(\.id)).count == 1 && Set(accounts.map(\.identity.id)).count == 3)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path + "/account").count == 3)
        // The script does not change an account that exists.
        #expect(try await run("account") == 1)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path + "/account").count == 3)
    }

    @Test("Nothing is left of an account that was not finished")
    func failed() async throws {
        #expect(try await run("account", baton: "/bin/false") == 1)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }
}
