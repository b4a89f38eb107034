// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import BatonTestSupport
import Foundation
import Logging
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonNode

/// Names of files in user info, which another device of the account chose: `baton-root:` and `baton-document:` URLs.
///
/// Path traversal: CVE-2025-27142 (LocalSend), CVE-2024-38272 (Quick Share); links that lead out of a folder:
/// CVE-2022-42725, CVE-2023-29380 (Warpinator).
@Suite("Attacks with files in user info")
struct CarriedFileAttacks {
    private let scratch: ScratchFolder
    private let shared: URL

    init() throws {
        scratch = try ScratchFolder("attack")
        shared = try scratch.folder("Documents")
        try FileManager.default.createDirectory(
            at: shared.appendingPathComponent("inner"), withIntermediateDirectories: false)
        _ = try scratch.file("secret", "precious")
    }

    /// The files of a device that shares one folder.
    private func files() throws -> SharedFiles {
        let roots = try scratch.file("roots-\(UUID().uuidString)", "Documents=\(shared.path)\n")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: roots.path)
        return SharedFiles(
            path: FilePath(roots.path), on: try BlockingExecutor(name: "files"),
            logger: Logger(label: "attack") { _ in SwiftLogNoOpLogHandler() })
    }

    /// The path that an application is handed for the URL of another device; nil when it is refused.
    private func path(of url: String) async throws -> String? {
        var payload = WireActivityPayload()
        payload.summary.kind = .document
        payload.userInfo.pairs = [
            .with {
                $0.key = "file"
                $0.value.url = url
            }
        ]
        do {
            let arrival = try await files().incoming(payload, of: "laptop", takesLocal: true)
            let value = try #require(arrival.payload.userInfo.pairs.first?.value.url)
            return URL(string: value).flatMap { $0.isFileURL ? $0.path : nil }
        } catch is HandoffError {
            return nil
        }
    }

    /// Whether an application that opens the path is led out of the shared folder.
    private func leavesFolder(_ path: String?) -> Bool {
        guard let path else { return false }
        let target = URL(fileURLWithPath: path).standardizedFileURL.resolvingSymlinksInPath().path
        let folder = shared.resolvingSymlinksInPath().path
        return target != folder && !target.hasPrefix(folder + "/")
    }

    @Test(
        "Path traversal in the place of a file",
        arguments: [
            "gone/../../secret", "gone/%2E%2E/%2e%2e/secret", "gone%2F..%2F..%2Fsecret", "gone/..%2F../secret",
        ])
    func traversal(place: String) async throws {
        try await attack("a file in a shared folder at \(place)") {
            Outcome(succeeds: leavesFolder(try await path(of: "baton-root:///Documents/\(place)")))
        }
        let document = try await path(of: "baton-document:///Documents/\(place)")
        #expect(!leavesFolder(document), "\(document ?? "")")
    }

    @Test("A link that leads out of a shared folder", arguments: ["out", "inner/out", "way/secret"])
    func link(place: String) async throws {
        let folder = scratch.path
        for (name, target) in [("out", folder + "/secret"), ("inner/out", "../../secret"), ("way", "..")] {
            try FileManager.default.createSymbolicLink(
                atPath: shared.appendingPathComponent(name).path, withDestinationPath: target)
        }
        try await attack("a file in a shared folder at \(place), behind a link") {
            Outcome(succeeds: leavesFolder(try await path(of: "baton-root:///Documents/\(place)")))
        }
        let document = try await path(of: "baton-document:///Documents/\(place)")
        #expect(document == nil, "\(document ?? "")")
    }
}
