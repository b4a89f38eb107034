// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages
import BatonTestSupport
import Foundation
import Testing

/// One document, used by threads and tasks at the same time.
@Suite("Documents from many threads", .timeLimit(.minutes(3)))
struct DocumentThreadsTests {
    private static let rounds = 150

    /// The calls of a document's user. Each thread makes all of them many times, from another start.
    private static let uses: [@Sendable (Document, [URL], Int) -> Void] = [
        { document, _, _ in document.becomeFront() },
        { document, _, round in
            document.activity.title = "Title \(round)"
            document.activity.addUserInfoEntries(from: ["round": .integer(Int64(round))])
        },
        { document, files, round in #expect(throws: Never.self) { try document.move(to: files[round % files.count]) } },
        { document, files, _ in #expect(document.fileURL.map { files.contains($0) } == true) },
        { document, _, _ in document.needsSave = true },
        { document, _, _ in
            // A watch that begins and ends in the midst of changes.
            _ = document.changes.makeAsyncIterator()
            _ = (document.size, document.needsSave, document.activity.isCurrent, document.activity.userInfo)
        },
        { document, _, _ in document.resignFront() },
    ]

    /// Waits for a thread.
    private func thread(_ body: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                body()
                continuation.resume()
            }
        }
    }

    @Test("Reading, editing, moving, coming to the front and watching at once harm nothing; it is as the last left it")
    func hammered() async throws {
        let stage = try await Stage()
        let folder = try ScratchFolder("threads")
        defer { folder.remove() }
        let files = try (0..<2).map { number in
            let file = folder.url.appending(path: "\(number)")
            try Data("0123456789".utf8).write(to: file)
            return file
        }
        let asked = Box(0)
        let document = try Document(
            fileURL: files[0], activityType: Stage.editing, application: stage.application
        ) {
            asked.change { $0 += 1 }
            return ["asked": .integer(Int64(asked.value))]
        }
        let watchers = (0..<3).map { _ in
            let changes = document.changes
            return Task {
                var last: Document.Change?
                for await change in changes { last = change }
                return last
            }
        }
        await withTaskGroup { group in
            for first in 0..<8 {
                group.addTask {
                    await thread {
                        for round in 0..<Self.rounds {
                            Self.uses[(first + round) % Self.uses.count](document, files, round)
                        }
                    }
                }
            }
            for first in 0..<4 {
                group.addTask {
                    for round in 0..<Self.rounds / 5 {
                        let offset = (first + round) % 10
                        let read = try? await document.read(at: UInt64(offset), length: 4)
                        #expect(read == Data("0123456789".utf8).dropFirst(offset).prefix(4))
                        let file = try? await document.arrived()
                        #expect(file.map { files.contains($0) } == true)
                    }
                }
            }
            // Meanwhile two devices continue it whenever they find it offered.
            for _ in 0..<2 {
                group.addTask {
                    for _ in 0..<Self.rounds / 5 {
                        guard let saved = try? await stage.save(document.activity) else { continue }
                        let url = saved.userInfo.entries[UserActivity.documentURLKey]?.url
                        #expect(files.map(\.absoluteString).contains(url ?? ""), "\(saved.userInfo.entries)")
                    }
                }
            }
        }

        // Every reference names the file of the last move. A running save begins without the key.
        let key = UserActivity.documentURLKey
        let file = try #require(document.fileURL)
        #expect(document.activity.document == file)
        #expect(document.activity.userInfo[key].map { $0 == .url(file) } ?? true)
        try await eventually("it is saved") { document.activity.userInfo[key] == .url(file) }

        // From here on one thread decides.
        try document.move(to: files[1])
        document.activity.title = "The end"
        document.becomeFront()
        try await eventually("it is offered as it is") {
            guard let offer = await stage.node.offered.last?.latest else { return false }
            return offer.title == "The end"
                && String(decoding: offer.documentPath, as: UTF8.self) == files[1].path(percentEncoded: false)
        }
        #expect(await stage.node.offered.count == 1)
        let saves = Int64(asked.value)
        #expect(try await stage.save(document.activity).userInfo.entries["asked"]?.integer ?? 0 > saves)

        // Several tasks close it, or bring others to the front; it ends once.
        await withTaskGroup { group in
            for number in 0..<8 {
                group.addTask { await thread { number.isMultiple(of: 2) ? document.close() : document.becomeFront() } }
            }
        }
        for watcher in watchers { #expect(await watcher.value == .closed) }
        try await eventually("it is offered no more") { await stage.node.offered.isEmpty }
        #expect(document.activity.isInvalidated && !document.activity.isCurrent)
        for await change in document.changes { Issue.record("\(change) after the end") }
        await stage.application.close()
        await stage.node.stop()
    }

    @Test("Of many who move it at once one is the last, and document, key and title are of that one")
    func moved() async throws {
        let stage = try await Stage()
        let files = (0..<4).map { URL(filePath: "/nonexistent/\($0)") }
        let document = try Document(fileURL: files[0], activityType: Stage.editing, application: stage.application)
        for round in 0..<50 {
            await withTaskGroup { group in
                for file in files {
                    group.addTask {
                        await thread {
                            for _ in 0..<50 { #expect(throws: Never.self) { try document.move(to: file) } }
                        }
                    }
                }
                group.addTask { for _ in 0..<50 { await document.updateUserActivityState(document.activity) } }
            }
            let file = try #require(document.fileURL)
            #expect(document.activity.document == file, "round \(round)")
            #expect(document.activity.userInfo[UserActivity.documentURLKey] == .url(file), "round \(round)")
            #expect(document.activity.title == file.lastPathComponent, "round \(round)")
        }
        document.close()
        await stage.application.close()
        await stage.node.stop()
    }

    @Test("Of threads that bring documents to the front and away, watchers hear the order in which it happened")
    func fronts() async throws {
        let stage = try await Stage()
        let file = URL(filePath: "/nonexistent/file")
        for round in 0..<200 {
            let documents = try (0..<2).map { _ in
                try Document(fileURL: file, activityType: Stage.editing, application: stage.application)
            }
            let seen = documents.map { document in
                let changes = document.changes
                return Task {
                    var seen: [Document.Change] = []
                    for await change in changes { seen.append(change) }
                    return seen
                }
            }
            // Fewer changes than the bound for a slow watcher.
            await withTaskGroup { group in
                for number in 0..<4 {
                    group.addTask {
                        await thread {
                            for step in 0..<3 {
                                let document = documents[(number + step) % 2]
                                if (number + step) % 3 == 0 { document.resignFront() } else { document.becomeFront() }
                            }
                        }
                    }
                }
            }
            let isFront = documents.map(\.activity.isCurrent)
            for document in documents { document.close() }
            for (isFront, seen) in zip(isFront, seen) {
                let told = await seen.value
                #expect(told.last == .closed)
                let turns = told.dropLast()
                #expect(turns.last.map { $0 == .becameFront } ?? false == isFront, "round \(round): \(told)")
                for (index, change) in turns.enumerated() {
                    #expect(
                        change == (index.isMultiple(of: 2) ? .becameFront : .resignedFront), "round \(round): \(told)")
                }
            }
        }
        await stage.application.close()
        await stage.node.stop()
    }

    @Test("Of devices that take it over at once each gets the whole state, however many are asked for it")
    func atOnce() async throws {
        var deadlines = ApplicationDeadlines()
        // How long many of them take is the machine's affair.
        deadlines.save = .seconds(60)
        deadlines.ownCall = .seconds(60)
        let stage = try await Stage(deadlines: deadlines)
        let file = URL(filePath: "/nonexistent/file")
        let document = try Document(
            fileURL: file, activityType: Stage.editing, application: stage.application
        ) {
            // As one that has to ask its window does.
            await Task.yield()
            return ["cursor": 42]
        }
        document.becomeFront()
        _ = try await stage.offered(1)
        for round in 0..<20 {
            // Fewer than an application is asked at a time.
            await withTaskGroup { group in
                for number in 0..<24 {
                    group.addTask {
                        let saved = try? await stage.save(document.activity, for: "device \(number)")
                        let keys = saved?.userInfo.entries.keys.sorted()
                        #expect(keys == [UserActivity.documentURLKey, "cursor"].sorted(), "round \(round)")
                    }
                }
            }
        }
        document.close()
        await stage.application.close()
        await stage.node.stop()
    }
}
