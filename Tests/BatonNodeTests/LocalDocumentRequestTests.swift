// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import BatonMessages
import BatonTestSupport
import BatonTransport
import Foundation
import Logging
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonNode

/// Requests of an application to a running node about files and documents, allowed or refused.
@Suite("Requests about documents on the local socket", .timeLimit(.minutes(5)))
struct LocalDocumentRequestTests {
    @Test("Ranges need a handoff and stay within 16 MiB; access needs a shared folder")
    func requests() async throws {
        let scratch = try ScratchFolder("local")
        defer { scratch.remove() }
        let folder = scratch.path
        let home = try Home(environment: ["BATON_HOME": folder])
        _ = try AccountStore(folder: AccountStore.folder(in: home)).make(deviceName: "node")
        try scratch.write("x", to: "shared/file")
        let node = Node(home: home, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await node.start()
        let connection = try await Connection.connect(
            toLocalSocket: home.socketPath, on: EventLoop(name: "application"))

        func code(_ request: WireRequest.OneOf_Kind) async -> HandoffError.Code? {
            do {
                let (_, stream) = try await connection.request(request)
                await stream.finish()
                return nil
            } catch {
                return error.code
            }
        }
        func read(_ id: Int, _ length: UInt64, _ path: String = "") -> WireRequest.OneOf_Kind {
            .documentRead(
                .with {
                    $0.handoffID = Data(count: id)
                    $0.length = length
                    $0.path = Data(path.utf8)
                })
        }
        func access(_ path: String) -> WireRequest.OneOf_Kind { .access(.with { $0.path = Data(path.utf8) }) }
        #expect(await code(read(16, 16 << 20)) == .noSuchClaim)
        #expect(await code(read(16, 16 << 20 + 1)) == .invalidRequest)
        #expect(await code(read(15, 1)) == .noSuchClaim)
        #expect(await code(read(16, 1, "in/a/folder")) == .noSuchClaim)
        for path in ["/etc/passwd", "..", "a/../b", "a//b", "a/"] {
            #expect(await code(read(16, 1, path)) == .invalidRequest)
        }
        for path in ["", "shared/file", "/a\0b"] { #expect(await code(access(path)) == .invalidRequest) }
        #expect(await code(access(folder + "/shared/file")) == .accessRefused)
        try SharedRootsFile.add(
            "Shared", FilePath(folder + "/shared"), to: SharedRootsFile.path(in: home))
        #expect(await code(access(folder + "/shared/file")) == nil)
        #expect(await code(access(folder + "/shared/../state")) == .accessRefused)
        // The node writes down the meaning of a path, and does not refuse it for its form.
        try SharedRootsFile.add(
            "Again", FilePath(folder + "/shared/../shared"), to: SharedRootsFile.path(in: home))

        // A file URL of an offer is translated, or refused with its key.
        func offer(_ urls: [String: String]) -> WireRequest.OneOf_Kind {
            .offer(
                .with {
                    $0.type = "org.example.note"
                    $0.userInfo.entries = urls.mapValues { url in .with { $0.url = url } }
                })
        }
        #expect(await code(offer(["a": "file://\(folder)/shared/file"])) == nil)
        #expect(await code(offer(["a": "file:///nonexistent"])) == .invalidRequest)
        #expect(await code(offer(["a": "file:///etc/passwd", "b": "file:///etc/group"])) == .invalidRequest)
        #expect(await code(offer(["a": "file:///etc/passwd", "b": "file:///etc/passwd"])) == nil)
        await connection.close()
        await node.stop()
    }
}
