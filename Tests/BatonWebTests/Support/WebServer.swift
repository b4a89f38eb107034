// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

@testable import BatonWeb

/// A web host on loopback that answers over HTTPS as a test wants it: `server.py` beside this file.
final class WebServer: Sendable {
    /// The answer to a path.
    struct Answer: Encodable {
        var status = 200
        var headers: [String: String] = [:]
        var body = Data()
        var mode = ""

        static func file(_ bytes: [UInt8], mode: String = "") -> Answer { Answer(body: Data(bytes), mode: mode) }
    }

    static let unavailableReason: String? =
        FileManager.default.isExecutableFile(atPath: "/usr/bin/python3")
        ? WebAuthority.unavailableReason : "python3 is not installed"

    /// The address of the server, as a fetcher's configuration takes it.
    let address: String
    private let folder: ScratchFolder
    private let process: ChildProcess

    init(
        as holder: WebAuthority.Operator, answers: [String: Answer] = [:], on address: String = "127.0.0.1",
        speaksOldTLS: Bool = false
    ) async throws {
        folder = try ScratchFolder("web")
        try JSONEncoder().encode(answers).write(to: folder.url.appendingPathComponent("answers.json"))
        let command = [
            "/usr/bin/python3",
            URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("server.py").path,
            holder.certificate, holder.key, folder.path, address,
        ]
        process = try ChildProcess(command + (speaksOldTLS ? ["old"] : []))
        let portFile = folder.url.appendingPathComponent("port")
        try await eventually("the server listens") { FileManager.default.fileExists(atPath: portFile.path) }
        let port = try #require(UInt16(String(contentsOf: portFile, encoding: .utf8)))
        self.address = address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)"
    }

    deinit {
        process.signal(SIGKILL)
        process.waitUntilExit()
    }

    /// Answers otherwise from now on.
    func answer(_ answers: [String: Answer]) throws {
        try JSONEncoder().encode(answers).write(to: folder.url.appendingPathComponent("answers.json"), options: .atomic)
    }

    /// The requests so far, as `HOST PATH`.
    var requests: [String] {
        let text = (try? String(contentsOf: folder.url.appendingPathComponent("requests"), encoding: .utf8)) ?? ""
        return text.split(separator: "\n").map(String.init)
    }
}
