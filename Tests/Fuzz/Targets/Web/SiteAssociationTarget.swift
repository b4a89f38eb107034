// SPDX-License-Identifier: Apache-2.0

@testable import BatonApplications
@testable import BatonWeb

/// A web host's file about itself, the names that it is asked by, and the addresses of pages that are opened.
///
/// The first byte of an input chooses the meaning of the rest: the file; a host and, after a line feed, a domain that
/// an application claims; or, if it is 255, an address.
enum SiteAssociationTarget: FuzzTarget {
    static let name = "site-association"
    static let maximumLength = 4096

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        var input = Input(bytes)
        let kind = input.byte()
        let content = input.remainder()
        switch kind {
        case 255: open(content)
        case _ where kind % 2 == 0: read(content)
        case _: try match(content)
        }
    }

    /// An address that a peer has chosen becomes an argument of a program.
    private static func open(_ address: [UInt8]) {
        let text = String(decoding: address, as: UTF8.self)
        do throws(LaunchError) {
            let opened = try ApplicationLauncher.pageAddress(text)
            expect(opened.lowercased().hasPrefix("http://") || opened.lowercased().hasPrefix("https://"), opened)
            expect(opened.utf8.allSatisfy { $0 > 32 && $0 < 127 && !"\"<>\\^`{|}".utf8.contains($0) }, opened)
            let authority = opened.drop { $0 != ":" }.dropFirst(3).prefix { !"/?#".contains($0) }
            expect(!authority.isEmpty && !authority.contains("@"), "no plain site: \(opened)")
            expect((try? ApplicationLauncher.pageAddress(opened)) == opened, "\(opened) is opened as another")
        } catch {
            expect(!error.description.isEmpty, "an error without a sentence")
        }
    }

    private static func read(_ file: [UInt8]) {
        do throws(SiteAssociationError) {
            let association = try SiteAssociation(file)
            expect(!association.lists(team: "", identifier: "org.example.reader"), "nobody's application is listed")
            expect(
                JSONShape.problem(
                    of: file, depth: SiteAssociation.maximumDepth, string: SiteAssociation.maximumStringLength) == nil,
                "a file of a bad shape was parsed")
        } catch {
            expect(error.description.hasPrefix("its file "), "\(error)")
        }
    }

    private static func match(_ content: [UInt8]) throws {
        let parts = content.split(separator: 10, maxSplits: 1, omittingEmptySubsequences: false)
        let text = String(decoding: parts.first ?? [], as: UTF8.self)
        let domain = try? AssociatedDomain(String(decoding: parts.dropFirst().first ?? [], as: UTF8.self))
        guard let host = WebHost(text) else { return }
        expect(host.name.utf8.count <= WebHost.maximumLength, "a long name")
        expect(WebHost(host.name) == host, "\(host) reads as another host")
        // A part of an address cannot leave its place there.
        expect(
            host.name.utf8.allSatisfy { $0 == 45 || $0 == 46 || (48...57).contains($0) || (97...122).contains($0) },
            "\(host)")
        guard let domain, domain.contains(host) else { return }
        expect(host == domain.source || host.name.hasSuffix("." + domain.source.name), "\(host) is not of \(domain)")
    }

    static func seeds() -> [[UInt8]] {
        let files = [
            SignedFiles.content, "{}", #"{"activitycontinuation":{}}"#, #"{"activitycontinuation":{"apps":"x"}}"#,
            #"{"applinks":{"apps":[],"details":[{"appIDs":["T.a"],"components":[{"/":"/*","?":{"a":"???"}}]}]}}"#,
            #"{"activitycontinuation":{"apps":["T.a","","é.\u00e9","\ud83d\ude00.x"]}}"#,
            String(repeating: "[", count: 16) + String(repeating: "]", count: 16),
        ]
        let names = [
            "example.org\nexample.org", "www.example.org\n*.example.org", "Example.ORG.\n*.org", "127.0.0.1\n*.0.1",
            "xn--mrchen-bua.example\n*.example", "example.org\0.example.com\nexample.com",
        ]
        let addresses = [
            "https://example.org/@a/K\u{F6}ln\u{202E}?b@c", "http://example.org/?a={\"b\"}|<c>`d`\\^[1]%41",
            "https://user@example.org/", "https://example.org\\@example.com/", "HTTP://[::1]:80/#x",
            "file:///etc/passwd",
        ]
        return files.map { [0] + Array($0.utf8) } + names.map { [1] + Array($0.utf8) }
            + addresses.map { [255] + Array($0.utf8) }
    }
}
