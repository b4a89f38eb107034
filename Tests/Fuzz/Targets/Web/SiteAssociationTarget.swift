@testable import BatonWeb

/// What a web host says about itself, and the names that it is asked by.
///
/// The first byte of an input says what the rest is: the file; or a host and, behind a line feed, a domain that an
/// application claims.
enum SiteAssociationTarget: FuzzTarget {
    static let name = "site-association"
    static let maximumLength = 4096

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        var input = Input(bytes)
        let kind = input.byte()
        let content = input.remainder()
        if kind % 2 == 0 { read(content) } else { try match(content) }
    }

    private static func read(_ file: [UInt8]) {
        do throws(SiteAssociationError) {
            let association = try SiteAssociation(file)
            // Each name costs its bytes in the file, and no more memory than a small multiple of them.
            expect(association.cost <= 128 + file.count * 32, "a file of \(file.count) costs \(association.cost)")
            expect(!association.lists(team: "", identifier: "org.example.reader"), "nobody's application is listed")
            expect(
                JSONShape.problem(
                    of: file, depth: SiteAssociation.maximumDepth, string: SiteAssociation.maximumStringLength) == nil,
                "a file of a bad shape was parsed")
        } catch {
            expect(error.code == .malformed && !error.message.isEmpty, "\(error)")
        }
    }

    private static func match(_ content: [UInt8]) throws {
        let parts = content.split(separator: 10, maxSplits: 1, omittingEmptySubsequences: false)
        let text = String(decoding: parts.first ?? [], as: UTF8.self)
        let domain = AssociatedDomain(String(decoding: parts.dropFirst().first ?? [], as: UTF8.self))
        guard let host = WebHost(text) else { return }
        expect(host.name.utf8.count <= WebHost.maximumLength, "a long name")
        expect(WebHost(host.name) == host, "\(host) reads as another host")
        // What becomes part of an address cannot leave its place there.
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
        return files.map { [0] + Array($0.utf8) } + names.map { [1] + Array($0.utf8) }
    }
}
