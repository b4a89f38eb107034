// SPDX-License-Identifier: Apache-2.0

import BatonMessages
import BatonTestSupport
import Foundation
import SwiftProtobuf
import Testing

@testable import Baton

/// The examples of the documentation are code that is compiled, and do what the articles say.
@Suite("Examples of the documentation", .timeLimit(.minutes(1)))
struct DocumentationTests {
    private static let top = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")

    private static func files(in folder: String, ending: String) throws -> [URL] {
        let folder = top.appending(path: folder)
        return try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted()
            .filter { $0.hasSuffix(ending) }.map { folder.appending(path: $0) }
    }

    /// The Swift blocks of an article.
    private static func blocks(of article: URL) throws -> [String] {
        try String(contentsOf: article, encoding: .utf8).components(separatedBy: "```swift\n").dropFirst()
            .compactMap { $0.components(separatedBy: "```").first }
    }

    /// The lines without comments, which an article may leave out.
    private static func code(_ text: String) -> String {
        text.split(separator: "\n").filter { !$0.drop { $0 == " " }.hasPrefix("//") }.joined(separator: "\n")
    }

    @Test("Each Swift block of the guide stands in a sample that is compiled")
    func quoted() throws {
        let samples = try
            (Self.files(in: "Sources/Examples", ending: ".swift")
            + [Self.top.appending(path: "Tests/ExamplesTests/NoteExample.swift")])
            .map { Self.code(try String(contentsOf: $0, encoding: .utf8)) }
        var count = 0
        for article in try Self.files(in: "Sources/Baton/Baton.docc", ending: ".md") {
            for block in try Self.blocks(of: article) {
                count += 1
                #expect(
                    samples.contains { $0.contains(Self.code(block)) },
                    "\(article.lastPathComponent) quotes code that no sample has:\n\(block)")
            }
        }
        #expect(count >= 10)
    }

    @Test("The note of the first article is offered, saved and continued")
    func note() async throws {
        let folder = try ScratchFolder("note")
        defer { folder.remove() }
        let node = try await ApplicationNode(in: folder.path)
        let note = try await Note(homeFolder: folder.path)
        await MainActor.run {
            note.text = "Milk"
            note.edit()
        }
        try await eventually("the note is offered") { await node.offered.first?.latest.title == "Shopping" }
        let activity = try #require(await node.offered.first)
        let saved = try await node.ask(.willSave(.with { $0.activityID = activity.request.activityID })).answer
        guard case .willSave(let state) = saved else {
            Issue.record("it was not saved: \(saved)")
            return
        }
        #expect(try UserInfo(state.userInfo) == ["text": "Milk"])

        let arriving = try UserActivity(activityType: Note.editing, application: note.application)
        arriving.userInfo = ["text": "Bread"]
        let isContinued = await note.application(
            note.application, continue: arriving, restorationHandler: RestorationHandler(arriving))
        #expect(isContinued)
        #expect(await note.text == "Bread")
        await note.application.close()
        await node.stop()
    }
}
