// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonTestSupport
import Foundation
import Logging
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonNode

@Suite("Files of user info between devices")
struct SharedFilesTests {
    /// Two devices that share a folder, each where it has it.
    private final class Scene: Sendable {
        private let scratch: ScratchFolder
        let path: String
        let origin: SharedFiles
        let continuing: SharedFiles

        init() throws {
            scratch = try ScratchFolder("shared")
            path = try FileLookup.resolved(scratch.filePath).string
            for folder in ["here/Docs/inner", "there/Documents/inner", "elsewhere"] {
                try FileManager.default.createDirectory(
                    atPath: path + "/" + folder, withIntermediateDirectories: true)
            }
            for (name, text) in [
                "here/Docs/a b": "1", "here/Docs/inner/c": "22", "there/Documents/inner/c": "333", "elsewhere/out": "x",
                "elsewhere/second": "y",
            ] { try Data(text.utf8).write(to: URL(filePath: path + "/" + name)) }
            origin = try Self.files(path + "/here-roots", "Documents=\(path)/here/Docs\n")
            continuing = try Self.files(path + "/there-roots", "Documents=\(path)/there/Documents\n")
        }

        private static func files(_ file: String, _ text: String) throws -> SharedFiles {
            try write(text, to: file)
            return SharedFiles(
                path: FilePath(file), on: try BlockingExecutor(name: "files"),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        }

        static func write(_ text: String, to file: String) throws {
            try Data(text.utf8).write(to: URL(filePath: file))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
        }

        func link(_ name: String, to target: String) throws {
            try FileManager.default.createSymbolicLink(atPath: path + "/" + name, withDestinationPath: target)
        }

        func url(_ name: String) -> String { URL(fileURLWithPath: path + "/" + name).absoluteString }

        func document(_ name: String) throws -> DocumentSource {
            try DocumentSource(DocumentScan.scanFile(FilePath(path + "/" + name)))
        }

        /// The translation of one URL on the origin.
        func outgoing(_ url: String, document: DocumentSource? = nil) async throws -> String? {
            try await origin.outgoing(["k": .url(url)], document: document).userInfo.entries["k"]?.url
        }

        /// The translation of one URL on the other device.
        func incoming(_ url: String, hasDocument: Bool = false, takesLocal: Bool = true) async throws -> String? {
            try await arrival(url, hasDocument: hasDocument, takesLocal: takesLocal).payload.userInfo.entries["k"]?.url
        }

        func arrival(
            _ url: String, hasDocument: Bool = false, takesLocal: Bool = true
        ) async throws -> SharedFiles.Arrival {
            var payload = WireActivityPayload()
            payload.userInfo = ["k": .url(url)]
            payload.summary.kind = hasDocument ? .document : .application
            return try await continuing.incoming(payload, of: "laptop", takesLocal: takesLocal)
        }
    }

    private func expectRefused(
        _ code: HandoffError.Code, _ text: String, _ body: () async throws -> some Any
    ) async {
        do {
            _ = try await body()
            Issue.record("it was not refused: \(text)")
        } catch let error as HandoffError {
            #expect(error.code == code && error.message.contains(text), "\(error.code): \(error.message)")
        } catch {
            Issue.record("\(error)")
        }
    }

    @Test("A file in the shared folder is the same file in the folder of the other device")
    func both() async throws {
        let scene = try Scene()
        #expect(try await scene.outgoing(scene.url("here/Docs/a b")) == "baton-root:///Documents/a%20b")
        #expect(try await scene.outgoing(scene.url("here/Docs/inner/c") + "#4") == "baton-root:///Documents/inner/c#4")
        #expect(try await scene.outgoing(scene.url("here/Docs/inner") + "/") == "baton-root:///Documents/inner/")
        #expect(try await scene.outgoing(scene.url("here/Docs")) == "baton-root:///Documents/")
        #expect(
            try await scene.incoming("baton-root:///Documents/inner/c#4") == scene.url("there/Documents/inner/c") + "#4"
        )
        // The program that keeps the folders the same may be behind.
        #expect(
            try await scene.incoming("baton-root:///Documents/a%20b") == "file://\(scene.path)/there/Documents/a%20b")
        #expect(try await scene.incoming("baton-root:///Documents/inner/") == scene.url("there/Documents/inner/"))
        for other in ["https://example.org/file:///x", "mailto:a@example.org", "Documents/x"] {
            #expect(try await scene.outgoing(other) == other)
            #expect(try await scene.incoming(other) == other)
        }
    }

    @Test("On the origin, links and .. count for what they lead to")
    func originLinks() async throws {
        let scene = try Scene()
        try scene.link("here/Docs/leak", to: "../../elsewhere/out")
        try scene.link("here/Docs/leaks", to: scene.path + "/elsewhere")
        try scene.link("elsewhere/into", to: scene.path + "/here/Docs/inner")
        try scene.link("here/Docs/inside", to: "inner/c")
        try scene.link("docs", to: "here/Docs")
        #expect(try await scene.outgoing(scene.url("elsewhere/into/c")) == "baton-root:///Documents/inner/c")
        #expect(try await scene.outgoing(scene.url("here/Docs/inside")) == "baton-root:///Documents/inner/c")
        #expect(try await scene.outgoing(scene.url("docs/inner/c")) == "baton-root:///Documents/inner/c")
        #expect(
            try await scene.outgoing("file://\(scene.path)/elsewhere/../here/Docs/inner/../a%20b")
                == "baton-root:///Documents/a%20b")
        // A link that leads outside is outside: it becomes the document, under its own name.
        for outside in ["here/Docs/leak", "here/Docs/leaks/out", "here/Docs/../../elsewhere/out"] {
            let url = "file://\(scene.path)/\(outside)"
            let result = try await scene.origin.outgoing(["k": .url(url)], document: nil)
            #expect(result.userInfo.entries["k"]?.url == "baton-document:", "\(outside)")
            #expect(result.document?.path == FilePath("\(scene.path)/\(outside)"))
        }
        // A folder beside it that begins with the same letters is another one.
        try FileManager.default.createDirectory(atPath: scene.path + "/here/Docs2", withIntermediateDirectories: false)
        try Data("z".utf8).write(to: URL(filePath: scene.path + "/here/Docs2/z"))
        #expect(try await scene.outgoing(scene.url("here/Docs2/z")) == "baton-document:")
    }

    @Test("On the continuing device, what would leave the folder is not translated")
    func continuingLinks() async throws {
        let scene = try Scene()
        try scene.link("there/Documents/leak", to: "../../elsewhere/out")
        try scene.link("there/Documents/leaks", to: scene.path + "/elsewhere")
        try scene.link("there/Documents/inside", to: "inner/c")
        #expect(try await scene.incoming("baton-root:///Documents/inside") == scene.url("there/Documents/inside"))
        for url in ["leak", "leaks/out", "leaks"] {
            await expectRefused(
                .accessRefused, "“k” is a file in the shared folder Documents, and a link there leads out"
            ) {
                try await scene.incoming("baton-root:///Documents/" + url)
            }
        }
        await expectRefused(.accessRefused, "run `baton roots add Music FOLDER` here") {
            try await scene.incoming("baton-root:///Music/a")
        }
        for url in [
            "baton-root:///Documents/../../elsewhere/out", "baton-root:///Documents/%2E%2E/x", "baton-root:/etc/passwd",
            "baton-root:///Documents/a%00", "file:///etc/passwd", "FILE:/etc/passwd", "file:etc",
            "baton-document:/etc/x",
        ] {
            await expectRefused(.internal, "laptop sent in “k” what no activity may have") {
                try await scene.incoming(url, hasDocument: true)
            }
        }
        await expectRefused(.internal, "a document that it does not offer") {
            try await scene.incoming("baton-document:")
        }
        try FileManager.default.removeItem(atPath: scene.path + "/there/Documents")
        await expectRefused(.accessRefused, "cannot be used here") {
            try await scene.incoming("baton-root:///Documents/a")
        }
    }

    @Test("Nested user info is translated throughout, and a key is named by its whole path")
    func nested() async throws {
        let scene = try Scene()
        let inside = WireValue.url(scene.url("here/Docs/inner/c"))
        let out = WireValue.url(scene.url("elsewhere/out"))
        var list = WireArrayValue()
        list.elements = [.string("file:///not/a/url"), inside, .dictionary(["deep": out])]
        let info: WireDictionaryValue = [
            "list": .array(list), "set": .set(list), "z": out, "n": .with { $0.integer = 3 },
        ]
        let result = try await scene.origin.outgoing(info, document: nil)
        #expect(result.document?.path.string == scene.path + "/elsewhere/out")
        let root = WireValue.url("baton-root:///Documents/inner/c")
        var expected = WireArrayValue()
        expected.elements = [.string("file:///not/a/url"), root, .dictionary(["deep": .url("baton-document:")])]
        #expect(
            result.userInfo == [
                "list": .array(expected), "set": .set(expected), "z": .url("baton-document:"),
                "n": .with { $0.integer = 3 },
            ])

        list.elements[2] = .dictionary(["deep": .url(scene.url("elsewhere/second"))])
        await expectRefused(.invalidRequest, "“m.list[2].deep” names a second file") {
            try await scene.origin.outgoing(["a": out, "m": .dictionary(["list": .array(list)])], document: nil)
        }
        var payload = WireActivityPayload()
        payload.summary.kind = .document
        payload.userInfo = result.userInfo
        let arrived = try await scene.continuing.incoming(payload, of: "laptop", takesLocal: true)
        expected.elements[1] = .url(scene.url("there/Documents/inner/c"))
        #expect(arrived.payload.userInfo.entries["set"] == .set(expected))
        #expect(arrived.localDocument == nil)
    }

    @Test("The document: its own URL, the first file outside, and no second one")
    func document() async throws {
        let scene = try Scene()
        let out = try scene.document("elsewhere/out")
        try scene.link("elsewhere/same", to: "out")
        #expect(try await scene.outgoing(scene.url("elsewhere/out"), document: out) == "baton-document:")
        #expect(try await scene.outgoing(scene.url("elsewhere/same") + "#2", document: out) == "baton-document:#2")
        await expectRefused(.invalidRequest, "“k” names a second file outside") {
            try await scene.outgoing(scene.url("elsewhere/second"), document: out)
        }
        for url in [scene.url("elsewhere/"), scene.url("elsewhere/nothing"), "file://host/x", "file:///dev/null"] {
            await expectRefused(.invalidRequest, "“k” ") { try await scene.outgoing(url) }
        }
        for url in ["baton-document:", "baton-root:///Documents/x", "baton-root:x"] {
            await expectRefused(.invalidRequest, "“k” is a URL that nodes use") { try await scene.outgoing(url) }
        }
        // What is said crosses to the other device: never a path.
        do {
            _ = try await scene.outgoing(scene.url("elsewhere/second"), document: out)
        } catch let error as HandoffError {
            #expect(!error.message.contains("elsewhere"))
        }
    }

    @Test("A document in the shared folder is used where it is, by whoever has it there too")
    func localDocument() async throws {
        let scene = try Scene()
        let url = try await scene.outgoing(
            scene.url("here/Docs/inner/c"), document: try scene.document("here/Docs/inner/c"))
        #expect(url == "baton-document:///Documents/inner/c")
        let arrival = try await scene.arrival(try #require(url), hasDocument: true)
        #expect(arrival.localDocument?.path.string == scene.path + "/there/Documents/inner/c")
        #expect(arrival.localDocument?.size == 3)
        #expect(arrival.payload.userInfo.entries["k"]?.url == scene.url("there/Documents/inner/c"))
        // A user who named a destination wants it there.
        let fetched = try await scene.arrival(try #require(url), hasDocument: true, takesLocal: false)
        #expect(fetched.localDocument == nil && fetched.payload.userInfo.entries["k"]?.url == "baton-document:")
        // Where it is missing, a link leads out, or the folder is not shared, it is fetched.
        try scene.link("there/Documents/leak", to: "../../elsewhere/out")
        for place in ["Documents/a%20b", "Documents/leak", "Documents/inner", "Music/c"] {
            let other = try await scene.arrival("baton-document:///" + place, hasDocument: true)
            #expect(other.localDocument == nil && other.payload.userInfo.entries["k"]?.url == "baton-document:")
        }
    }

    @Test("The innermost of several folders counts, and the file is read again when it has changed")
    func roots() async throws {
        let scene = try Scene()
        let file = scene.path + "/here-roots"
        let both = "All=\(scene.path)\nDocuments=\(scene.path)/here/Docs\nGone=\(scene.path)/gone\n"
        try Scene.write(both, to: file)
        #expect(try await scene.outgoing(scene.url("here/Docs/a b")) == "baton-root:///Documents/a%20b")
        #expect(try await scene.outgoing(scene.url("elsewhere/out")) == "baton-root:///All/elsewhere/out")
        try Scene.write(both + "oops\n", to: file)
        #expect(try await scene.outgoing(scene.url("here/Docs/a b")) == "baton-document:")
        try FileManager.default.removeItem(atPath: file)
        #expect(try await scene.outgoing(scene.url("here/Docs/a b")) == "baton-document:")
    }

    @Test("An application may use what is shared, and what was fetched for it")
    func access() async throws {
        let scene = try Scene()
        try scene.link("here/Docs/leak", to: "../../elsewhere/out")
        func mayUse(_ name: String, _ application: String? = "org.example.a") async throws {
            try await scene.origin.requireAccess(to: FilePath("\(scene.path)/\(name)"), by: application)
        }
        for name in ["here/Docs/a b", "here/Docs", "elsewhere/../here/Docs/inner/c"] {
            try await mayUse(name)
            try await mayUse(name, nil)
        }
        for name in ["elsewhere/out", "here/Docs/leak", "here/Docs/../../elsewhere/out", "here"] {
            await expectRefused(.accessRefused, "is in no shared folder") { try await mayUse(name) }
        }
        await expectRefused(.accessRefused, "is not there") { try await mayUse("here/Docs/nothing") }
        await scene.origin.grant(FilePath(scene.path + "/elsewhere/./out"), to: "org.example.a")
        try await mayUse("elsewhere/out")
        try await mayUse("here/Docs/leak")
        await expectRefused(.accessRefused, "no shared folder") { try await mayUse("elsewhere/out", "org.example.b") }
        await expectRefused(.accessRefused, "no shared folder") { try await mayUse("elsewhere/out", nil) }
        // This is no longer the file that the application was given.
        try FileManager.default.removeItem(atPath: scene.path + "/elsewhere/out")
        try scene.link("elsewhere/out", to: "second")
        await expectRefused(.accessRefused, "no shared folder") { try await mayUse("elsewhere/out") }
    }

    @Test("The list of fetched documents stays bounded, and forgets the oldest")
    func granted() async throws {
        let scene = try Scene()
        func grant(_ name: String, _ application: String) async {
            await scene.origin.grant(FilePath("\(scene.path)/\(name)"), to: application)
        }
        func mayUse(_ name: String, _ application: String) async throws {
            try await scene.origin.requireAccess(to: FilePath("\(scene.path)/\(name)"), by: application)
        }
        await grant("elsewhere/out", "a")
        for number in 1..<SharedFiles.grantBound { await grant("elsewhere/out", "b\(number)") }
        try await mayUse("elsewhere/out", "a")
        await expectRefused(.accessRefused, "no shared folder") { try await mayUse("elsewhere/second", "a") }
        // It is the latest now, and takes no second place.
        await grant("elsewhere/out", "a")
        try await mayUse("elsewhere/out", "b1")
        await grant("elsewhere/second", "b1")
        try await mayUse("elsewhere/out", "a")
        try await mayUse("elsewhere/second", "b1")
        await expectRefused(.accessRefused, "no shared folder") { try await mayUse("elsewhere/out", "b1") }
        try await mayUse("elsewhere/out", "b2")
    }
}

extension WireDictionaryValue: ExpressibleByDictionaryLiteral {
    init(dictionaryLiteral elements: (String, WireValue)...) {
        self = .with { $0.entries = Dictionary(uniqueKeysWithValues: elements) }
    }
}

extension WireValue {
    fileprivate static func url(_ url: String) -> WireValue { .with { $0.url = url } }
    fileprivate static func string(_ text: String) -> WireValue { .with { $0.string = text } }
    fileprivate static func array(_ list: WireArrayValue) -> WireValue { .with { $0.array = list } }
    fileprivate static func set(_ list: WireArrayValue) -> WireValue { .with { $0.set = list } }
    fileprivate static func dictionary(_ value: WireDictionaryValue) -> WireValue { .with { $0.dictionary = value } }
}
