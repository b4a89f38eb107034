// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import BatonApplications

struct WebHostTests {
    @Test func names() {
        #expect(WebHost("Example.ORG")?.name == "example.org")
        #expect(WebHost("example.org.")?.name == "example.org")
        #expect(WebHost("xn--mrchen-bua.example")?.name == "xn--mrchen-bua.example")
        #expect(WebHost("localhost")?.name == "localhost")
        let label = String(repeating: "a", count: 63)
        #expect(WebHost(label + ".org") != nil)
        #expect(WebHost(label + "a.org") == nil)
        let longest = [label, label, label, String(repeating: "b", count: 61)].joined(separator: ".")
        #expect(longest.utf8.count == WebHost.maximumLength)
        #expect(WebHost(longest) != nil && WebHost(longest + ".") != nil)
        #expect(WebHost(longest + "b") == nil)
    }

    @Test(arguments: [
        "", ".", "..", "a..b", ".org", "-a.org", "a-.org", "a b.org", "a/b", "user@example.org", "example.org:443",
        "märchen.example", "example.org\0", "127.0.0.1", "127.1", "0x7f.1", "2130706433", "0x7f000001", "[::1]", "::1",
        "fe80::1%eth0", "example.1", "a_b.org", "example.org?x", "example.org#x", "\u{ff45}xample.org",
    ])
    func noNames(_ text: String) {
        #expect(WebHost(text) == nil)
    }

    @Test func domains() throws {
        let domain = try AssociatedDomain("example.org")
        let wildcard = try AssociatedDomain("*.Example.org")
        #expect(wildcard.source == domain.source)
        for (name, isExact, isBelow) in [
            ("example.org", true, false), ("www.example.org", false, true), ("a.b.example.org", false, true),
            ("badexample.org", false, false), ("example.org.evil.org", false, false), ("org", false, false),
        ] {
            let host = try #require(WebHost(name))
            #expect(domain.contains(host) == isExact, "\(name)")
            #expect(wildcard.contains(host) == isBelow, "\(name)")
        }
        for text in ["*", "*.", "*.org", "*example.org", "**.example.org", "a.*.org", "*.*.org", "*.127.0.0.1", ""] {
            #expect(throws: ApplicationManifestError.self, "\(text)") { try AssociatedDomain(text) }
        }
    }

    @Test func theClosestDomainCounts() throws {
        let host = try #require(WebHost("emily.users.example.org"))
        let all = try ["*.example.org", "*.users.example.org", "example.org", "emily.users.example.org"]
            .map(AssociatedDomain.init)
        #expect(AssociatedDomain.closest(to: host, in: all)?.source.name == "emily.users.example.org")
        #expect(AssociatedDomain.closest(to: host, in: Array(all.dropLast()))?.source.name == "users.example.org")
        #expect(AssociatedDomain.closest(to: host, in: Array(all.prefix(1)))?.source.name == "example.org")
        #expect(AssociatedDomain.closest(to: host, in: [all[2], try AssociatedDomain("*.example.com")]) == nil)
    }
}
