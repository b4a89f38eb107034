// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import SystemPackage
import Testing

@testable import BatonApplications

@Suite("Application manifests")
struct ManifestTests {
    private static func manifest(
        identifier: String = "org.example.editor", name: String = "Editor", team: String = "", types: [String] = [],
        documents: [DocumentType] = [], domains: [AssociatedDomain] = [],
        versions: [String: ClosedRange<UInt32>] = [:], command: [String] = ["editor"], entry: String? = nil
    ) throws -> ApplicationManifest {
        try ApplicationManifest(
            identifier: identifier, name: name, team: team, activityTypes: types, documentTypes: documents,
            associatedDomains: domains, readableVersions: ReadableVersions(versions), command: command,
            desktopEntry: entry, source: .registered(from: nil))
    }

    private enum Fault {
        case missing, malformed, tooLarge
    }

    private static func code(_ make: @autoclosure () throws -> ApplicationManifest) -> Fault? {
        do {
            _ = try make()
            return nil
        } catch {
            let text = "\(error)"
            return text.hasSuffix("is the most") ? .tooLarge : text.hasPrefix("it has no ") ? .missing : .malformed
        }
    }

    @Test("what it continues are its types and those of its documents, each once")
    func types() throws {
        let manifest = try Self.manifest(
            types: ["org.example.a", "org.example.b", "org.example.a"],
            documents: [
                DocumentType(activityType: "org.example.c", fileExtensions: ["TXT"]),
                DocumentType(activityType: "org.example.b"),
            ])
        #expect(manifest.activityTypes == ["org.example.a", "org.example.b", "org.example.c"])
        #expect(manifest.documentTypes[0].fileExtensions == ["txt"])
    }

    @Test("every bound holds what is at it, and refuses what is over it")
    func bounds() throws {
        func text(_ count: Int) -> String { String(repeating: "a", count: count) }
        func many(_ count: Int) -> [String] { (0..<count).map { "t\($0)" } }
        let domain = try AssociatedDomain("example.org")
        for (extra, code) in [(0, nil), (1, Fault.tooLarge)] {
            #expect(Self.code(try Self.manifest(name: text(255 + extra))) == code)
            #expect(Self.code(try Self.manifest(team: text(255 + extra))) == code)
            #expect(Self.code(try Self.manifest(types: many(128 + extra))) == code)
            #expect(
                Self.code(
                    try Self.manifest(
                        documents: [DocumentType](repeating: DocumentType(activityType: "t"), count: 128 + extra)))
                    == code)
            #expect(
                Self.code(
                    try Self.manifest(documents: [
                        DocumentType(activityType: "t", fileExtensions: many(64 + extra))
                    ])) == code)
            #expect(
                Self.code(
                    try Self.manifest(documents: [
                        DocumentType(activityType: "t", contentTypes: [text(255 + extra)])
                    ])) == code)
            #expect(
                Self.code(try Self.manifest(domains: [AssociatedDomain](repeating: domain, count: 32 + extra))) == code)
            #expect(Self.code(try Self.manifest(command: many(128 + extra))) == code)
            #expect(Self.code(try Self.manifest(command: ["x", text((16 << 10) - 3 + extra)])) == code)
            #expect(Self.code(try Self.manifest(entry: text(255 + extra))) == code)
        }
        for (extra, code) in [(0, nil), (1, Fault.malformed)] {
            #expect(Self.code(try Self.manifest(identifier: text(200 + extra))) == code)
            #expect(Self.code(try Self.manifest(types: [text(96 + extra)])) == code)
        }
    }

    @Test("what cannot be an identifier, a name, a type or a command is refused")
    func refusals() {
        for identifier in ["a b", ".a", "../a", "a/b", "ä", "a\n"] {
            #expect(Self.code(try Self.manifest(identifier: identifier)) == .malformed, "\(identifier)")
        }
        #expect(Self.code(try Self.manifest(identifier: "")) == .missing)
        #expect(Self.code(try Self.manifest(name: "")) == .missing)
        #expect(Self.code(try Self.manifest(name: "a\u{1B}[2J")) == .malformed)
        #expect(Self.code(try Self.manifest(team: "a\nb")) == .malformed)
        for type in ["", "a b", "a/b", "ü"] {
            #expect(Self.code(try Self.manifest(types: [type])) == .malformed, "\(type)")
        }
        #expect(Self.code(try Self.manifest(command: [""])) == .malformed)
        #expect(Self.code(try Self.manifest(command: ["a", "b\0c"])) == .malformed)
        #expect(Self.code(try Self.manifest(command: [])) == nil)
        #expect(Self.code(try Self.manifest(types: ["a"], versions: ["b": 1...2])) == .malformed)
    }

    @Test("versions: a range is read, nothing said reads all, and an activity without a version is always read")
    func versions() throws {
        let manifest = try Self.manifest(types: ["a", "b"], versions: ["a": 2...3])
        let versions = manifest.readableVersions
        #expect((0...4).map { versions.reads(version: $0, of: "a") } == [true, false, true, true, false])
        #expect(versions.reads(version: .max, of: "b"))
        #expect(try ReadableVersions.range("7", of: "a") == 7...7)
        #expect(try ReadableVersions.range("1-4294967295", of: "a") == 1...UInt32.max)
        for text in ["", "0", "2-1", "1-", "-1", "1-2-3", "+1", "4294967296", "one"] {
            #expect(throws: ApplicationManifestError.self, "\(text)") { try ReadableVersions.range(text, of: "a") }
        }
    }
}

@Suite("Associated domains")
struct AssociatedDomainTests {
    @Test("entries of the entitlement, ours and other services'")
    func entries() throws {
        #expect(try AssociatedDomain.entry("activitycontinuation:Example.org")?.description == "example.org")
        let wildcard = try AssociatedDomain.entry("activitycontinuation:*.example.org?mode=developer")
        #expect(wildcard?.description == "*.example.org")
        for other in ["applinks:example.org", "webcredentials:*.example.org", "appclips:example.org"] {
            #expect(try AssociatedDomain.entry(other) == nil)
        }
        #expect(throws: ApplicationManifestError.self) { try AssociatedDomain.entry("example.org") }
    }

    @Test(
        "what is no domain is refused",
        arguments: [
            "", "*", "*.", "*.org", "*.*.org", "a.*.org", "-a.org", "a-.org", "a..org", "https://a.org", "a.org/b",
            "a_b.org", "ä.org", "a.org:8443", "a.org:0", "a.org:x", "127.0.0.1", "127.1", "a.1",
            String(repeating: "a", count: 64) + ".org",
        ])
    func refusals(_ text: String) {
        #expect(throws: ApplicationManifestError.self) { try AssociatedDomain(text) }
    }

    @Test("it is written as it was read, in lower case")
    func written() throws {
        for text in ["example.org", "*.example.org"] {
            #expect(try AssociatedDomain(text).description == text)
        }
        let star = try AssociatedDomain("*.Example.ORG?mode=developer")
        #expect(star.source.name == "example.org" && star.isWildcard)
    }
}

@Suite("Team tags")
struct TeamTagTests {
    @Test("the first 8 bytes of a hash; no team is 8 zeros")
    func tags() {
        #expect(TeamTag(of: "").bytes == [UInt8](repeating: 0, count: 8))
        // printf baton-team/1A1B2C3D4E5 | sha256sum
        #expect(TeamTag(of: "A1B2C3D4E5").bytes == [0xdb, 0x64, 0x21, 0x85, 0x29, 0xa6, 0xa7, 0xbb])
        #expect(TeamTag([]) == TeamTag.none && TeamTag([UInt8](repeating: 0, count: 8)) == TeamTag.none)
        #expect(TeamTag([1, 2, 3]) == nil)
        #expect(TeamTag(TeamTag(of: "x").bytes) == TeamTag(of: "x"))
    }
}
