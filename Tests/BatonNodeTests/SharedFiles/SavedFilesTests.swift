// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
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

/// Files that an application names only when a device takes its activity over.
@Suite("Files in saved state", .timeLimit(.minutes(5)))
struct SavedFilesTests {
    private final class Scene: Sendable {
        private let scratch: ScratchFolder
        var folder: String { scratch.path }
        let offers: Offers
        let activity: OfferedActivity
        private let connections: (node: Connection, application: Connection)
        private let saving: Task<Void, Never>

        /// - Parameter urls: what the application saves.
        init(_ urls: [String: String]) async throws {
            scratch = try ScratchFolder("saved")
            for name in ["one", "two"] { try scratch.write(name, to: name) }
            let loop = ControlLoop.loop
            offers = Offers(
                files: SharedFiles(
                    path: "/nonexistent/roots", on: try BlockingExecutor(name: "files"),
                    logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            ) {}
            connections = try await connectedPair(on: loop, limits: .local)
            activity = try OfferedActivity(
                .with {
                    $0.type = "org.example.note"
                    $0.needsSave = true
                }, document: nil)
            _ = try await offers.offer(activity, from: connections.node)
            let folder = scratch.path
            let saved = urls.mapValues { "file://" + folder + "/" + $0 }
            let application = connections.application
            saving = Task {
                for await incoming in application.incoming {
                    try? await incoming.stream.respond(
                        .willSave(.with { $0.userInfo.entries = saved.mapValues { url in .with { $0.url = url } } }))
                    await incoming.stream.finish()
                }
            }
        }

        func close() async {
            await connections.node.close()
            await connections.application.close()
            await saving.value
            scratch.remove()
        }
    }

    private let device = PeerName(id: "d", name: "desktop")

    @Test("The first file becomes the document of this claim, which is then served")
    func first() async throws {
        let scene = try await Scene(["a": "one"])
        let (id, payload) = try await scene.offers.claim(scene.activity.id, by: device)
        #expect(payload.summary.kind == .document && payload.summary.documentSize == 3)
        #expect(payload.userInfo.entries["a"]?.url == "baton-document:")
        let claim = await scene.offers.core[id]
        #expect(claim?.kept.activity.document?.path == FilePath(scene.folder + "/one"))
        // The activity itself has none, and the next claim may have another.
        #expect(scene.activity.document == nil)
        await scene.close()
    }

    @Test("A second file fails this handoff with its key and without its path; the activity stays available")
    func second() async throws {
        let scene = try await Scene(["a": "one", "b": "two"])
        for _ in 0..<2 {
            do {
                _ = try await scene.offers.claim(scene.activity.id, by: device)
                Issue.record("two files crossed")
            } catch {
                #expect(error.code == .invalidRequest && error.message.contains("“b” names a second file"))
                #expect(!error.message.contains(scene.folder))
            }
        }
        #expect(await scene.offers.visible.count == 1)
        #expect(await !scene.offers.core.holdsClaim(device.id))
        await scene.close()
    }
}
