// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import BatonWeb

struct SiteAssociationTests {
    private func read(_ text: String) -> Result<SiteAssociation, SiteAssociationError> {
        Result { () throws(SiteAssociationError) in try SiteAssociation(Array(text.utf8)) }
    }

    @Test func lists() throws {
        let file = try SiteAssociation(
            Array(
                #"""
                {
                  "applinks": {"apps": [], "details": [{"appIDs": ["T.c"], "components": [{"/": "/*", "exclude": true}]}]},
                  "activitycontinuation": {"apps": ["9JA89QQLNQ.org.example.reader", "T.d", "T.org.example", "", "Té.x"]},
                  "webcredentials": {"apps": ["T.e"]}
                }
                """#.utf8))
        #expect(file.lists(team: "9JA89QQLNQ", identifier: "org.example.reader"))
        #expect(file.lists(team: "T", identifier: "d"))
        // Other services list for themselves; other cases, parts and teams are others.
        for (team, identifier) in [
            ("T", "e"), ("T", "c"), ("9ja89qqlnq", "org.example.reader"), ("9JA89QQLNQ", "org.example"), ("", "T.d"),
            ("T.d", ""), ("", ""), ("T", "D"), ("Té", "x"), ("9JA89QQLNQ", "org.example.reader "),
        ] {
            #expect(!file.lists(team: team, identifier: identifier), "\(team) \(identifier)")
        }
    }

    @Test(arguments: [
        "{}", #"{"applinks":{}}"#, #"{"activitycontinuation":{}}"#, #"{"activitycontinuation":{"apps":[]}}"#,
    ])
    func listsNobody(_ text: String) {
        #expect(read(text).refusal == nil)
        #expect(!read(text).listsReader)
    }

    @Test(arguments: [
        "", " ", "[]", "null", "true", "1", "\"x\"", "{", "}", "{]", "<html></html>", #"{"activitycontinuation":[]}"#,
        #"{"activitycontinuation":{"apps":"TEAM.org.example.reader"}}"#,
        #"{"activitycontinuation":{"apps":["TEAM.org.example.reader", 1]}}"#,
        #"{"activitycontinuation":{"apps":{"TEAM.org.example.reader":1}}}"#,
        #"{"activitycontinuation":{"apps":["TEAM.org.example.reader"]}} x"#,
        #"{"activitycontinuation":{"apps":["TEAM.org.example.reader"]}"#, #"{"x":"\"#,
    ])
    func wrong(_ text: String) {
        #expect(read(text).refusal == .malformed)
    }

    @Test func otherEncodings() {
        let text = #"{"activitycontinuation":{"apps":["TEAM.org.example.reader"]}}"#
        let wide = text.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
        for file in [wide, [0xff, 0xfe] + wide, Array(text.utf8).dropLast() + [0xff, 0x7d]] {
            #expect(throws: SiteAssociationError.self) { try SiteAssociation(file) }
        }
    }

    @Test func depthAtTheBound() {
        func nested(_ levels: Int) -> String {
            #"{"x":"# + String(repeating: "[", count: levels - 1) + String(repeating: "]", count: levels - 1) + "}"
        }
        #expect(read(nested(SiteAssociation.maximumDepth)).refusal == nil)
        #expect(read(nested(SiteAssociation.maximumDepth + 1)).refusal == .malformed)
        #expect(read(String(repeating: "[", count: SiteAssociation.maximumBytes)).refusal == .malformed)
        // A bracket in a string is none.
        #expect(read(#"{"x":"\"[[[[[[[[[[[[[[[[[[[[[[[[[[[["}"#).refusal == nil)
    }

    @Test func stringsAtTheBound() {
        let bound = SiteAssociation.maximumStringLength
        #expect(read(#"{"x":""# + String(repeating: "y", count: bound) + #""}"#).refusal == nil)
        #expect(read(#"{"x":""# + String(repeating: "y", count: bound + 1) + #""}"#).refusal == .malformed)
        let identifier = String(repeating: "i", count: SiteAssociation.maximumIdentifierLength - 5)
        for (identifier, isListed) in [(identifier, true), (identifier + "i", false)] {
            let file = try? read(#"{"activitycontinuation":{"apps":["TEAM.\#(identifier)"]}}"#).get()
            #expect(file?.lists(team: "TEAM", identifier: identifier) == isListed)
        }
    }

    @Test func sizeAtTheBound() {
        let file = String(decoding: Site.file, as: UTF8.self)
        let padding = String(repeating: " ", count: SiteAssociation.maximumBytes - file.utf8.count)
        #expect(read(file + padding).listsReader)
        #expect(read(file + padding + " ").refusal == .tooLarge)
    }
}
