// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages
import BatonTestSupport
import BatonTransport
import FoundationEssentials
import SwiftProtobuf
import SystemPackage
import Testing

@Suite("Documents", .timeLimit(.minutes(1)))
struct DocumentTests {
    private static let type = "org.example.notes.document"
    private static let key = UserActivity.documentURLKey

    /// A file, and a document of it.
    private final class File: Sendable {
        private let folder: ScratchFolder
        var url: URL { folder.url.appending(path: "file") }

        init(_ text: String = "hello, world") throws {
            folder = try ScratchFolder("document")
            try folder.write(text, to: "file")
        }
    }

    /// Opens documents and keeps them.
    private final class Opener: ApplicationDelegate, UserActivityRestoring {
        let documents = Box<[Document]>([])
        let restored = Box<[UserInfo]>([])
        let failures = Box<[UserActivityError]>([])
        private let opens: Bool

        init(opens: Bool = true) { self.opens = opens }

        func application(_ application: Application, open document: Document) async -> (any UserActivityRestoring)? {
            guard opens else { return nil }
            documents.change { $0.append(document) }
            return self
        }

        func application(
            _ application: Application, didFailToContinueUserActivityWithType type: String, error: UserActivityError
        ) async { failures.change { $0.append(error) } }

        func restoreUserActivityState(_ activity: UserActivity) async {
            restored.change { $0.append(activity.userInfo) }
        }
    }

    private static func arrival(
        _ document: WireContinuedDocument, url: String = "baton-document:#7", handoff: UInt8 = 5
    ) -> WireRequest.OneOf_Kind {
        .continueActivity(
            .with {
                $0.handoffID = Data(repeating: handoff, count: 16)
                $0.device = "laptop"
                $0.document = document
                $0.payload.summary.kind = .document
                $0.payload.summary.type = type
                $0.payload.requiredUserInfoKeys = [key]
                $0.payload.userInfo.entries = [
                    key: .with { $0.url = url }, "cursor": .with { $0.integer = 42 },
                    "all": .with { $0.set.elements = [.with { $0.url = "baton-document:" }] },
                ]
            })
    }

    private func stage() async throws -> Stage {
        try await Stage(continues: [try ContinuedActivityType(Self.type)])
    }

    @Test("It makes its own activity, offered while it is at the front, and gone when it is closed")
    func ownActivity() async throws {
        let stage = try await stage()
        let file = try File()
        let asked = Box(0)
        let document = try Document(
            fileURL: file.url, activityType: Self.type, application: stage.application, title: "Letter"
        ) {
            asked.change { $0 += 1 }
            return ["cursor": .integer(Int64(asked.value))]
        }
        let seen = Box<[Document.Change]>([])
        let changes = document.changes
        let watching = Task { for await change in changes { seen.change { $0.append(change) } } }
        #expect(try await stage.offered(0).isEmpty)
        document.becomeFront()
        let offer = try #require(try await stage.offered(1).first)
        #expect(offer.request.type == Self.type && offer.request.title == "Letter")
        #expect(String(decoding: offer.request.documentPath, as: UTF8.self) == file.url.path(percentEncoded: false))
        try await eventually("its state is in it") {
            let info = await stage.node.offered.first?.latest.userInfo.entries
            return info?["cursor"]?.integer == 1 && info?[Self.key]?.url == file.url.absoluteString
        }
        // A device continues it: the state is asked for once more, and the URL goes with it.
        document.needsSave = true
        let saved = try await stage.save(document.activity)
        #expect(saved.userInfo.entries["cursor"]?.integer == 2)
        #expect(saved.userInfo.entries[Self.key]?.url == file.url.absoluteString)
        #expect(saved.requiredUserInfoKeys == [Self.key])
        #expect(String(decoding: saved.documentPath, as: UTF8.self) == file.url.path(percentEncoded: false))
        #expect(!document.needsSave)

        let moved = URL(filePath: "/tmp/moved here")
        try document.move(to: moved)
        try await eventually("it is offered where it is") {
            String(decoding: await stage.node.offered.first?.latest.documentPath ?? Data(), as: UTF8.self)
                == "/tmp/moved here"
        }
        #expect(document.fileURL == moved)
        document.resignFront()
        try await eventually("withdrawn") { await stage.node.offered.isEmpty }
        document.becomeFront()
        try await eventually("offered again") { await stage.node.offered.count == 1 }
        document.close()
        document.close()
        try await eventually("gone") { await stage.node.offered.isEmpty }
        #expect(document.activity.isInvalidated)
        document.becomeFront()
        await watching.value
        #expect(seen.value == [.becameFront, .stateChanged, .resignedFront, .becameFront, .closed])
        for await change in document.changes { Issue.record("\(change) after the end") }
        await stage.application.close()
    }

    @Test("However many watch a document, each is told what happens to it")
    func manyWatchers() async throws {
        let stage = try await stage()
        let document = try Document(fileURL: try File().url, activityType: Self.type, application: stage.application)
        let watchers = (0..<100).map { _ in document.changes }
        document.becomeFront()
        document.close()
        for watcher in watchers {
            let seen = await watcher.reduce(into: []) { $0.append($1) }
            #expect(seen == [.becameFront, .resignedFront, .closed] || seen == [.becameFront, .closed], "\(seen)")
        }
        await stage.application.close()
    }

    @Test("Reads of files share one thread, however many there are at once")
    func readingThreads() async throws {
        let stage = try await stage()
        let file = try File(String(repeating: "x", count: 1 << 20))
        let document = try Document(fileURL: file.url, activityType: Self.type, application: stage.application)
        let isOver = Box(false)
        let most = Task.detached {
            var most = 0
            while !isOver.value {
                let threads = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")
                let names = threads.map { try? String(contentsOfFile: "/proc/self/task/\($0)/comm", encoding: .utf8) }
                most = max(most, names.count { $0 == "baton-reading\n" })
            }
            return most
        }
        await withTaskGroup { group in
            for _ in 0..<200 {
                group.addTask {
                    let bytes = try? await document.read(at: 0, length: 1 << 20)
                    #expect(bytes?.count == 1 << 20)
                }
            }
        }
        isOver.value = true
        #expect(try await most.value == 1)
        document.close()
        await stage.application.close()
    }

    @Test("A document is told that it is behind, whatever took its place; closed it is told no more than that")
    func pushed() async throws {
        let stage = try await stage()
        let file = try File()
        func document() throws -> Document {
            try Document(fileURL: file.url, activityType: Self.type, application: stage.application)
        }
        let (first, second, third) = (try document(), try document(), try document())
        let other = try stage.activity()
        let seen = [first, second, third].map { document in
            let changes = document.changes
            return Task {
                var seen: [Document.Change] = []
                for await change in changes { seen.append(change) }
                return seen
            }
        }
        first.becomeFront()
        second.becomeFront()
        // It is there already.
        second.becomeFront()
        other.becomeCurrent()
        // It is not.
        second.resignFront()
        third.activity.becomeCurrent()
        third.activity.invalidate()
        second.becomeFront()
        await stage.application.close()
        first.becomeFront()
        for document in [first, second, third] { document.close() }
        #expect(await seen[0].value == [.becameFront, .resignedFront, .becameFront, .closed])
        #expect(
            await seen[1].value == [
                .becameFront, .resignedFront, .becameFront, .resignedFront, .closed,
            ])
        // Its activity was ended before it was closed.
        #expect(await seen[2].value == [.becameFront, .resignedFront, .closed])
        await stage.application.close()
    }

    @Test("A document that is let go is withdrawn; one of no file cannot be made")
    func lettingGo() async throws {
        let stage = try await stage()
        let file = try File()
        var document: Document? = try Document(
            fileURL: file.url, activityType: Self.type, application: stage.application)
        document?.becomeFront()
        _ = try await stage.offered(1)
        document = nil
        _ = try await stage.offered(0)
        let web = try #require(URL(string: "https://example.org/a"))
        #expect(throws: UserActivityError.self) {
            try Document(fileURL: web, activityType: Self.type, application: stage.application)
        }
        let activity = try stage.activity()
        #expect(throws: UserActivityError.self) { try Document(continuing: activity) }
        await stage.application.close()
    }

    @Test("A title that is the file's name follows the file; one that the application gave stays")
    func renaming() async throws {
        let stage = try await stage()
        let file = try File()
        let document = try Document(fileURL: file.url, activityType: Self.type, application: stage.application)
        document.becomeFront()
        let offer = try #require(try await stage.offered(1).first)
        #expect(offer.request.title == file.url.lastPathComponent)
        try document.move(to: URL(filePath: "/tmp/new name"))
        try await eventually("it is offered under its new name") {
            guard let latest = await stage.node.offered.first?.latest else { return false }
            return latest.title == "new name"
                && String(decoding: latest.documentPath, as: UTF8.self) == "/tmp/new name"
        }
        document.activity.title = "Letter"
        try document.move(to: URL(filePath: "/tmp/another"))
        #expect(document.activity.title == "Letter")
        document.close()
        await stage.application.close()
    }

    @Test("Its file is read from any thread, in any part")
    func localReading() async throws {
        let stage = try await stage()
        let file = try File("0123456789")
        let document = try Document(fileURL: file.url, activityType: Self.type, application: stage.application)
        for (offset, length, expected) in [
            (0, 4, "0123"), (8, 100, "89"), (10, 1, ""), (11, 1, ""), (3, 0, ""), (0, Int.max, "0123456789"),
        ] {
            let read = try await document.read(at: UInt64(offset), length: length)
            #expect(String(decoding: read, as: UTF8.self) == expected, "\(offset), \(length)")
        }
        #expect(try await document.read(at: .max, length: 1).isEmpty)
        let folder = try Document(
            fileURL: file.url.deletingLastPathComponent(), activityType: Self.type, application: stage.application)
        #expect(try await folder.read(at: 3, length: 4, of: file.url.lastPathComponent) == Data("3456".utf8))
        for path in ["", "/etc/passwd", "../x", "a/../b", "a//b", "./a"] {
            await #expect(throws: UserActivityError.self) { try await folder.read(at: 0, length: 1, of: path) }
        }
        #expect(try await document.arrived() == file.url)
        await #expect(throws: UserActivityError.self) { try await document.read(at: 0, length: -1) }
        try document.move(to: URL(filePath: "/nonexistent/x"))
        await #expect(throws: UserActivityError.self) { try await document.read(at: 0, length: 1) }
    }

    @Test("What continue does not handle is opened by the library, read early, and is where the user info says")
    func opened() async throws {
        let stage = try await stage()
        let opener = Opener()
        stage.application.delegate = opener
        let content = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0 / 7) })
        await stage.node.setDocument(content)
        let file = try File("it has come")
        let path = file.url.path(percentEncoded: false)
        let (answer, stream) = try await stage.node.ask(
            Self.arrival(
                .with {
                    $0.path = Data(path.utf8)
                    $0.size = UInt64(content.count)
                }))
        #expect(answer == .continueActivity(.init()))
        let document = try #require(opener.documents.value.first)
        #expect(opener.restored.value.first?["cursor"] == 42)
        #expect(document.fileURL == nil && document.size == 100_000)
        #expect(try await document.read(at: 99_990, length: 64) == content.suffix(10))
        #expect(try await document.read(at: 5, length: 70_000) == content[5..<70_005])

        // More than one request, and another version between them: no mixture of both.
        let (before, after) = (Data(repeating: 1, count: 17 << 20), Data(repeating: 2, count: 17 << 20))
        await stage.node.setDocument(before, then: after)
        #expect(try await document.read(at: 0, length: before.count) == after)

        let seen = Box<[Document.Change]>([])
        let changes = document.changes
        let watching = Task { for await change in changes { seen.change { $0.append(change) } } }
        let waiting = Task { try await document.arrived() }
        try await stream.send(
            record: WireDocumentEvent.with {
                $0.progress.bytes = 10
                $0.progress.total = 20
            })
        // All has come, and is not in place yet.
        try await stream.send(
            record: WireDocumentEvent.with {
                $0.progress.bytes = 20
                $0.progress.total = 20
            })
        try await stream.send(record: WireDocumentEvent.with { $0.arrived = Data(path.utf8) })
        let url = URL(filePath: path)
        #expect(try await waiting.value == url)
        #expect(document.fileURL == url)
        let info = document.activity.userInfo
        #expect(info[Self.key] == .url(try #require(URL(string: url.absoluteString + "#7"))))
        #expect(info["all"] == .set([.url(url)]))
        // From now on the file is read, and not the node asked.
        await stage.node.setDocument(Data())
        #expect(try await document.read(at: 3, length: 3) == Data("has".utf8))
        document.close()
        await watching.value
        #expect(
            seen.value == [
                .progress(received: 10, total: 20), .progress(received: 19, total: 20), .arrived(url), .closed,
            ])
        while try await stream.read() != nil {}
    }

    @Test(
        "A file whose name is not UTF-8 is read, opened and offered where it is, and user info names it",
        arguments: [true, false])
    func foreignName(isLocal: Bool) async throws {
        let stage = try await stage()
        let opener = Opener()
        stage.application.delegate = opener
        let folder = try ScratchFolder("document")
        defer { folder.remove() }
        let path = Array(folder.path.utf8) + Array("/caf".utf8) + [0xE9] + Array(" 1.txt".utf8)
        let file = FilePath(platformString: path.map { CChar(bitPattern: $0) } + [0])
        let written = try FileDescriptor.open(
            file, .writeOnly, options: [.create, .exclusiveCreate], permissions: .ownerReadWrite)
        try written.closeAfter { _ = try written.writeAll("it has come".utf8) }
        let address = folder.url.absoluteString + "/caf%E9%201.txt"
        let (_, stream) = try await stage.node.ask(
            Self.arrival(
                .with {
                    $0.path = Data(path)
                    $0.size = 11
                    $0.isLocal = isLocal
                }, url: isLocal ? address : "baton-document:"))
        if !isLocal { try await stream.send(record: WireDocumentEvent.with { $0.arrived = Data(path) }) }
        let document = try #require(opener.documents.value.first)
        let url = try await document.arrived()
        #expect(url.absoluteString == address)
        #expect(document.fileURL == url && document.activity.document == url)
        #expect(document.activity.userInfo[Self.key] == .url(url))
        #expect(try await document.read(at: 3, length: 100) == Data("has come".utf8))
        _ = try await stage.application.startAccessing(url)
        #expect(await stage.node.accessed == [String(decoding: path, as: UTF8.self)])
        let parent = try Document(fileURL: folder.url, activityType: Self.type, application: stage.application)
        #expect(try await parent.read(at: 7, length: 9, ofPath: path.suffix(10)) == Data("come".utf8))
        for way in ["caf\u{E9} 1.txt", "..", ""] {
            await #expect(throws: UserActivityError.self) {
                try await parent.read(at: 7, length: 9, ofPath: Array(way.utf8))
            }
        }
        // It is offered to other devices from here.
        let own = try Document(fileURL: url, activityType: Self.type, application: stage.application)
        own.becomeFront()
        let offer = try #require(try await stage.offered(1).first)
        #expect(offer.request.documentPath == Data(path))
        #expect(offer.request.title == String(decoding: path.suffix(10), as: UTF8.self))
        own.close()
        document.close()
        await stage.application.close()
    }

    @Test("A document that is here already needs no waiting; one without a folder can be read and not waited for")
    func places() async throws {
        let stage = try await stage()
        let opener = Opener()
        stage.application.delegate = opener
        let file = try File("shared")
        _ = try await stage.node.ask(
            Self.arrival(
                .with {
                    $0.path = Data(file.url.path(percentEncoded: false).utf8)
                    $0.size = 6
                    $0.isLocal = true
                }, url: file.url.absoluteString))
        let local = try #require(opener.documents.value.last)
        #expect(try await local.arrived().path(percentEncoded: false) == file.url.path(percentEncoded: false))
        #expect(try await local.read(at: 0, length: 10) == Data("shared".utf8))

        await stage.node.setDocument(Data("elsewhere".utf8))
        _ = try await stage.node.ask(Self.arrival(.with { $0.size = 9 }, handoff: 6))
        let remote = try #require(opener.documents.value.last)
        let refused = await #expect(throws: UserActivityError.self) { try await remote.arrived() }
        #expect(refused?.code == .invalid)
        #expect(try await remote.read(at: 4, length: 10) == Data("where".utf8))
        remote.close()
        let closed = await #expect(throws: UserActivityError.self) { try await remote.read(at: 0, length: 1) }
        #expect(closed?.code == .notContinued)
    }

    @Test("A read that the document overtakes goes on from the file, though its origin has gone")
    func overtaken() async throws {
        let stage = try await stage()
        let opener = Opener()
        stage.application.delegate = opener
        let file = try File("has come")
        let (asked, (held, lose)) = (Box(false), AsyncStream<Void>.makeStream())
        await stage.node.loseOrigin {
            asked.change { $0 = true }
            for await _ in held {}
        }
        let path = Data(file.url.path(percentEncoded: false).utf8)
        let (_, stream) = try await stage.node.ask(
            Self.arrival(
                .with {
                    $0.path = path
                    $0.size = 8
                }))
        let document = try #require(opener.documents.value.last)
        let reading = Task { try await document.read(at: 4, length: 10) }
        try await eventually("the node is asked") { asked.value }
        try await stream.send(record: WireDocumentEvent.with { $0.arrived = path })
        _ = try await document.arrived()
        lose.finish()
        #expect(try await reading.value == Data("come".utf8))
    }

    @Test("A document that does not come fails all who wait, with the reason, and lets the activity go")
    func failing() async throws {
        let stage = try await stage()
        let opener = Opener()
        stage.application.delegate = opener
        let (_, stream) = try await stage.node.ask(
            Self.arrival(
                .with {
                    $0.path = Data("/tmp/baton-never".utf8)
                    $0.size = 9
                }))
        let document = try #require(opener.documents.value.last)
        let waiting = Task { try await document.arrived() }
        try await stream.send(
            record: WireDocumentEvent.with {
                $0.failed = HandoffError(.destinationFull, "the disk is full").failure
            })
        await stream.finish()
        let error = await #expect(throws: UserActivityError.self) { try await waiting.value }
        #expect(error?.message == "the disk is full")
        while try await stream.read() != nil {}
        let later = await #expect(throws: UserActivityError.self) { try await document.arrived() }
        #expect(later?.message == "the disk is full")
    }

    @Test("A document that nobody opens was not handled")
    func unopened() async throws {
        let stage = try await stage()
        let opener = Opener(opens: false)
        stage.application.delegate = opener
        let refused = await #expect(throws: HandoffError.self) {
            try await stage.node.ask(Self.arrival(.with { $0.size = 1 }))
        }
        #expect(refused?.code == .notHandled)
        try await eventually("told") { opener.failures.value.first?.code == .notHandled }
    }
}
