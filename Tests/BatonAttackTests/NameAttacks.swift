// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import BatonTestSupport
import Foundation
import Glibc
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonCLI
@testable import BatonDocuments

/// Names that another device gives to files, and what it lets a terminal show.
///
/// Path traversal: CVE-2025-27142 (LocalSend), CVE-2024-38272 (Quick Share), CVE-2023-45685 and its kin. Warpinator
/// (CVE-2022-42725, CVE-2023-29380) followed links out of its folder. croc (CVE-2023-43616, CVE-2023-43617) overwrote
/// files and showed names with escapes (CVE-2023-43620).
@Suite("Attacks with names")
struct NameAttacks {
    private let scratch: ScratchFolder
    private let destination: URL

    init() throws {
        scratch = try ScratchFolder("attack")
        destination = try scratch.folder("destination")
        _ = try scratch.folder("outside")
    }

    /// Whether a document under this name lands outside the destination, or is the destination.
    private func escapes(_ label: DocumentLabel) throws -> Bool {
        let before = try outside()
        let folder = try DestinationFolder(FilePath(destination.path))
        let part = Array(".part-\(UUID().uuidString)".utf8)
        _ = try folder.make(part, isFolder: false, for: label)
        defer { try? SystemCalls.remove(part, from: folder.file, isFolder: false) }
        _ = try? folder.rename(part, to: label, .own, isFolder: false)
        return try outside() != before
    }

    /// Everything that is there, except in the destination.
    private func outside() throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: scratch.path)
            .filter { !$0.hasPrefix("destination/") || $0.hasPrefix("destination/inner/") }.sorted()
    }

    @Test("Path traversal in the name of a document", arguments: ["../a", "../outside/a", "inner/a", "inner/../../a"])
    func traversal(name: String) async throws {
        try FileManager.default.createDirectory(
            at: destination.appendingPathComponent("inner"), withIntermediateDirectories: false)
        try await attack("a document called \(name)") { defence in
            let bytes = Array(name.utf8)
            guard let label = defence.isOn ? try? DocumentLabel(bytes) : DocumentLabel(unchecked: bytes) else {
                return .refused
            }
            return Outcome(succeeds: try escapes(label))
        }
    }

    @Test("An absolute path in the name of a document")
    func absolutePath() async throws {
        try await attack("a document called by an absolute path") { defence in
            let bytes = Array("\(scratch.path)/outside/absolute".utf8)
            guard let label = defence.isOn ? try? DocumentLabel(bytes) : DocumentLabel(unchecked: bytes) else {
                return .refused
            }
            return Outcome(succeeds: try escapes(label))
        }
    }

    /// A NUL ends the name for the kernel and not for whoever looked at it: CWE-158.
    @Test("A name that ends earlier for the kernel than for the reader")
    func embeddedNUL() async throws {
        try await attack("a document called report.pdf NUL .txt") { defence in
            let bytes = Array("report.pdf\0.txt".utf8)
            guard let label = defence.isOn ? try? DocumentLabel(bytes) : DocumentLabel(unchecked: bytes) else {
                return .refused
            }
            let folder = try DestinationFolder(FilePath(destination.path))
            let part = Array(".part".utf8)
            _ = try folder.make(part, isFolder: false, for: label)
            _ = try folder.rename(part, to: label, .own, isFolder: false)
            return Outcome(
                succeeds: FileManager.default.fileExists(
                    atPath: destination.appendingPathComponent("report.pdf").path))
        }
    }

    /// They are no attacks: the kernel refuses them as well, where nobody has looked.
    @Test("Names that are none")
    func noNames() throws {
        for name in ["", ".", "..", "/", "a/", String(repeating: "a", count: 256)] {
            let bytes = Array(name.utf8)
            #expect(throws: DocumentError.self, "\(name)") { try DocumentLabel(bytes) }
            let folder = try DestinationFolder(FilePath(destination.path))
            let label = DocumentLabel(unchecked: bytes)
            _ = try folder.make(Array(".part".utf8), isFolder: false, for: label)
            #expect(throws: DocumentError.self, "\(name)") {
                try folder.rename(Array(".part".utf8), to: label, .own, isFolder: false)
            }
            try SystemCalls.remove(Array(".part".utf8), from: folder.file, isFolder: false)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: destination.path).isEmpty)
    }

    /// CVE-2022-42725, CVE-2023-29380 (Warpinator): a link in the destination leads out of it.
    @Test("The destination is exchanged for a link while a document comes")
    func exchangedDestination() async throws {
        try await attack("a link in the place of the destination") { defence in
            let target = try scratch.folder("target-\(defence)")
            let place = try scratch.folder("place-\(defence)")
            let label = try DocumentLabel(Array("report.pdf".utf8))
            // Held open from the first moment on; without that it would be looked up again.
            var folder = try DestinationFolder(FilePath(place.path))
            try FileManager.default.removeItem(at: place)
            try FileManager.default.createSymbolicLink(at: place, withDestinationURL: target)
            if !defence.isOn { folder = try DestinationFolder(FilePath(place.path)) }
            _ = try? folder.make(Array(".part".utf8), isFolder: false, for: label)
            _ = try? folder.rename(Array(".part".utf8), to: label, .own, isFolder: false)
            return Outcome(succeeds: try !FileManager.default.contentsOfDirectory(atPath: target.path).isEmpty)
        }
    }

    /// CVE-2023-43617's kind, and every "symlink race": what stands under a name is not what was looked at.
    @Test("A link in the place of a name, won in a race")
    func racedLink() async throws {
        let victim = try scratch.file("victim", "precious")
        try await attack("a link to a file of the user under the name of the part file") {
            let name = "part"
            try FileManager.default.createSymbolicLink(
                at: destination.appendingPathComponent(name), withDestinationURL: victim)
            let folder = try DestinationFolder(FilePath(destination.path))
            let label = try DocumentLabel(Array("a".utf8))
            guard let file = try? folder.make(Array(name.utf8), isFolder: false, for: label) else { return .refused }
            var (there, here) = (stat(), stat())
            #expect(fstat(file.rawValue, &here) == 0 && stat(victim.path, &there) == 0)
            return Outcome(succeeds: here.st_ino == there.st_ino)
        }
        try await attack("a file of the user under the name that the document gets at its end") {
            let label = try DocumentLabel(Array("report".utf8))
            let folder = try DestinationFolder(FilePath(destination.path))
            _ = try folder.make(Array(".part".utf8), isFolder: false, for: label)
            let own = destination.appendingPathComponent("report")
            try Data("precious".utf8).write(to: own)
            _ = try? folder.rename(Array(".part".utf8), to: label, .own, isFolder: false)
            return Outcome(succeeds: try Data(contentsOf: own) != Data("precious".utf8))
        }
        #expect(try String(contentsOf: victim, encoding: .utf8) == "precious")
    }

    enum Field: String, CaseIterable { case title, type, device, path }

    /// CVE-2023-43620 (croc), CVE-2021-42574 ("Trojan Source"): a name that moves the cursor, sets the window's title,
    /// or turns the order of its letters around.
    @Test("Escapes and controls of direction in what is shown", arguments: Field.allCases)
    func escapes(_ field: Field) async {
        await attack("a \(field) with escapes") {
            let hostile = "\u{1B}]0;pwned\u{07}\u{1B}[2J\u{9B}31m\r\n\u{202E}fdp.exe\u{2066}\u{200F}"
            var listing = WireActivityListing()
            listing.activity.id = Data(count: 16)
            listing.activity.type = field == .type ? hostile : "org.example.note"
            listing.activity.title = field == .title ? hostile : "Note"
            listing.device = field == .device ? hostile : "laptop"
            let activity = ListedActivity(listing)
            var shown = ActivityRendering.lines([activity], width: 200, now: 0).dropFirst().joined()
            if field == .path { shown = SafeText.escaped(path: Array(hostile.utf8)) }
            let isDangerous = shown.unicodeScalars.contains { scalar in
                switch scalar.properties.generalCategory {
                case .control, .format, .lineSeparator, .paragraphSeparator: true
                case _: false
                }
            }
            return Outcome(succeeds: isDangerous)
        }
    }
}
