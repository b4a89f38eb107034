// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Document source")
struct DocumentSourceTests {
    let scratch: ScratchFolder

    init() throws {
        scratch = try ScratchFolder()
    }

    func code(_ path: FilePath) async -> DocumentError.Code? {
        await DocumentFixture.code { _ = try DocumentSource(DocumentScan.scanFile(path)) }
    }

    @Test func tellsWhatTheFileIs() throws {
        let path = try scratch.makeFile("run.sh", [1, 2, 3], mode: 0o755)
        try SystemCalls.call { chmod(path.string, 0o4751) }
        let source = try DocumentSource(DocumentScan.scanFile(path))
        #expect(source.size == 3)
        #expect(source.label.bytes == Array("run.sh".utf8))
        #expect(try DocumentScan.scan(path).tree[0].permissions == 0o751)
        #expect(source == (try DocumentSource(DocumentScan.scan(path))))
        #expect(DocumentFixture.openFiles(in: scratch.filePath).isEmpty)
    }

    @Test func theUsersOwnLinkIsFollowedAndNamed() throws {
        let path = try scratch.makeFile("target", [1, 2])
        let link = scratch.filePath.appending("link")
        try SystemCalls.call { symlink(path.string, link.string) }
        let source = try DocumentSource(DocumentScan.scanFile(link))
        #expect(source.size == 2)
        #expect(source.label.description == "link")
    }

    @Test func missing() async {
        #expect(await code(scratch.filePath.appending("nothing")) == .missing)
    }

    @Test func linkToNowhereIsMissing() async throws {
        let link = scratch.filePath.appending("link")
        try SystemCalls.call { symlink("nowhere", link.string) }
        #expect(await code(link) == .missing)
    }

    @Test func aFileIsNoFolderOnTheWay() async throws {
        let path = try scratch.makeFile("file", [1])
        #expect(await code(path.appending("under")) == .missing)
    }

    @Test func folder() async {
        #expect(await code(scratch.filePath) == .isFolder)
        #expect(await code("/") == .isFolder)
    }

    @Test(.timeLimit(.minutes(1))) func pipeIsRefusedWithoutBlocking() async throws {
        let path = scratch.filePath.appending("pipe")
        try SystemCalls.call { mkfifo(path.string, 0o600) }
        #expect(await code(path) == .notRegularFile)
    }

    @Test func deviceAndKernelFilesAreRefused() async {
        #expect(await code("/dev/null") == .notRegularFile)
        #expect(await code("/proc/self/status") == .notRegularFile)
    }

    @Test func socketIsRefused() async throws {
        let path = scratch.filePath.appending("socket")
        let number = try SystemCalls.call { socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0) }
        defer { close(number) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.string.utf8) }
        try SystemCalls.call {
            withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
        }
        #expect(await code(path) == .notRegularFile)
    }

    @Test("The root folder has no name to offer, and a path that is too long names nothing")
    func paths() async {
        #expect(await DocumentFixture.code { _ = try DocumentScan.scan("/", room: nil) } == .noName)
        let long = FilePath("/tmp/" + String(repeating: "x", count: 256))
        #expect(await DocumentFixture.code { _ = try DocumentScan.scan(long, room: nil) } == .missing)
    }

    @Test func emptyFileIsFine() throws {
        #expect(try DocumentSource(DocumentScan.scanFile(try scratch.makeFile("empty", []))).size == 0)
    }

    @Test func unreadable() async throws {
        let path = try scratch.makeFile("secret", [1, 2, 3], mode: 0o000)
        try SystemCalls.call { chmod(scratch.path, 0o755) }
        // In a process of its own, because root reads everything and giving up root is for good.
        await #expect(processExitsWith: .success) { [path = path.string as String] in
            try DocumentFixture.becomeNobody()
            let code = await DocumentFixture.code { _ = try DocumentSource(DocumentScan.scanFile(FilePath(path))) }
            #expect(code == .unreadable)
        }
    }

    @Test func everySentenceSaysWhatToDo() {
        for code in DocumentError.Code.allCases {
            let message = DocumentError(code, "report.pdf", underlyingError: .noSpace).message
            #expect(message.hasSuffix("."), "\(code)")
            #expect(message.split(separator: ".").count > 1, "\(code)")
            #expect(!message.contains("Errno"), "\(code)")
        }
    }
}

@Suite("Document label")
struct DocumentLabelTests {
    @Test(arguments: [
        "", ".", "..", "/", "a/b", "../x", "/etc/passwd", "a\0b", "\0", String(repeating: "x", count: 256),
    ])
    func attacksAreRefused(_ name: String) async {
        #expect(await DocumentFixture.code { _ = try DocumentLabel(Array(name.utf8)) } == .badName)
    }

    @Test(arguments: ["a", "...", ".hidden", "a b", "~", "-rf", "\u{1B}[2J", "CON", String(repeating: "x", count: 255)])
    func whatAFileCanBeCalledIsKept(_ name: String) throws {
        #expect(try DocumentLabel(Array(name.utf8)).bytes == Array(name.utf8))
    }

    @Test func bytesOfNoEncodingAreKept() throws {
        let bytes: [UInt8] = [0xFF, 0xFE, 0x80, 0x41]
        let label = try DocumentLabel(bytes)
        #expect(label.bytes == bytes)
        #expect(label.description == "\\xff\\xfe\\x80A")
        #expect(label.component?.withPlatformString { [UInt8](bytesOf: $0) } == bytes)
    }

    @Test(arguments: [
        ("plain name.txt", "plain name.txt"), ("\u{1B}[31mred\u{7}", "\\u{1b}[31mred\\u{7}"),
        ("invoice\u{202E}fdp.exe", "invoice\\u{202e}fdp.exe"), ("a\nb", "a\\u{a}b"), ("back\\slash", "back\\\\slash"),
        ("Grüße 👩‍💻", "Grüße 👩‍💻"), ("❤️", "❤️"), ("a\u{3164}\u{2800}b", "a\\u{3164}\\u{2800}b"),
        ("a\u{E0041}\u{115F}\u{34F}", "a\\u{e0041}\\u{115f}\\u{34f}"),
        (
            "e" + String(repeating: "\u{301}", count: 7) + "e\u{301}",
            "e" + String(repeating: "\u{301}", count: 5) + "\\u{301}\\u{301}e\u{301}"
        ),
    ])
    func displayIsHarmless(_ name: String, _ shown: String) {
        #expect(NameDisplay.escaped(Array(name.utf8)) == shown)
    }

    @Test func partNameFitsAndEndsBetweenCharacters() throws {
        for name in ["a", String(repeating: "x", count: 255), String(repeating: "€", count: 85)] {
            let part = PartFileName.make(for: try DocumentLabel(Array(name.utf8)), tag: "abcdefgh")
            #expect(part.count <= 255)
            #expect(part.first == UInt8(ascii: "."))
            let text = try #require(String(validating: part, as: UTF8.self))
            #expect(text.hasSuffix(".abcdefgh.baton-part"))
        }
        let short = PartFileName.make(for: try DocumentLabel(Array("a".utf8)), tag: "abcdefgh")
        #expect(String(decoding: short, as: UTF8.self) == ".a.abcdefgh.baton-part")
    }
}
