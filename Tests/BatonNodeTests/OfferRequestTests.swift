// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonDocuments
import BatonMessages
import BatonProtocol
import BatonTestSupport
import Foundation
import SwiftProtobuf
import Testing

@testable import BatonNode

@Suite("The offers that an application may make")
struct OfferRequestTests {
    private func request(_ change: (inout WireOfferRequest) -> Void = { _ in }) -> WireOfferRequest {
        var request = WireOfferRequest()
        request.type = "org.example.note"
        change(&request)
        return request
    }

    private func expectRefused(
        _ code: HandoffError.Code, _ word: String, _ request: WireOfferRequest,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        do {
            _ = try OfferedActivity(request, document: nil)
            Issue.record("it was accepted", sourceLocation: sourceLocation)
        } catch {
            #expect(error.code == code, sourceLocation: sourceLocation)
            #expect(error.message.contains(word), "\(error.message)", sourceLocation: sourceLocation)
        }
    }

    @Test("Application activities, web pages and documents are told apart")
    func kinds() throws {
        let note = try OfferedActivity(request(), document: nil)
        #expect(note.kind == .application && note.title == "org.example.note")
        let page = try OfferedActivity(
            request {
                $0.type = ""
                $0.webPageURL = "https://example.org/"
            }, document: nil)
        #expect(page.kind == .web && page.type == ActivityType.browsingWeb && page.title == "Web page")
        #expect(page.summary.hasWebPage_p)
        #expect(page.payload.webPageURL == "https://example.org/")
        // Its address is its title only for the user of this device.
        #expect(page.ownTitle == "https://example.org/" && page.summary.title == "Web page")
        // A web page that stands for an application's activity makes it no web page.
        let both = try OfferedActivity(request { $0.webPageURL = "http://example.org" }, document: nil)
        #expect(both.kind == .application && both.summary.hasWebPage_p)

        let folder = try ScratchFolder("offer")
        defer { folder.remove() }
        let source = try DocumentSource(DocumentScan.scanFile(folder.write("hello", to: "letter.txt")))
        let document = try OfferedActivity(WireOfferRequest(), document: source)
        #expect(document.kind == .document && document.type == ActivityType.document)
        #expect(document.title == "letter.txt")
        #expect(document.summary.documentSize == 5)
    }

    @Test("The summary tells nothing of user info and URL")
    func summary() throws {
        let activity = try OfferedActivity(
            request {
                $0.userInfo.entries["key"] = .with { $0.string = "secret" }
                $0.webPageURL = "https://secret.example.org"
                $0.exclusive = true
                $0.supportsContinuationStreams = true
            }, document: nil)
        let bytes: Data = try activity.summary.serializedData()
        #expect(bytes.range(of: Data("secret".utf8)) == nil)
        #expect(activity.summary.exclusive && activity.summary.supportsContinuationStreams)
        #expect(activity.payload.userInfo.entries["key"]?.string == "secret")
    }

    @Test("A type is needed, in reverse DNS form and of bounded length")
    func types() throws {
        expectRefused(.invalidRequest, "needs a type", request { $0.type = "" })
        for type in ["with space", "org/example", "über", "a\n", "a\u{0}"] {
            expectRefused(.invalidRequest, "letters, digits", request { $0.type = type })
        }
        let longest = String(repeating: "a", count: AdvertisedActivity.maximumTypeCount)
        #expect(try OfferedActivity(request { $0.type = longest }, document: nil).type == longest)
        expectRefused(.invalidRequest, "96", request { $0.type = longest + "a" })
    }

    @Test("A title may have 1024 bytes")
    func titles() throws {
        let longest = String(repeating: "é", count: 512)
        #expect(try OfferedActivity(request { $0.title = longest }, document: nil).title == longest)
        expectRefused(.invalidRequest, "shorten", request { $0.title = longest + "a" })
    }

    @Test("A web page has an http or https URL with a host")
    func urls() throws {
        for url in ["file:///etc/passwd", "javascript:alert(1)", "https://", "http:", "example.org", "ftp://a/"] {
            expectRefused(.invalidRequest, "http or https", request { $0.webPageURL = url })
        }
        #expect(try OfferedActivity(request { $0.webPageURL = "HTTPS://a/" }, document: nil).kind == .application)
        let longest = "https://a/" + String(repeating: "x", count: 8192 - 10)
        #expect(try OfferedActivity(request { $0.webPageURL = longest }, document: nil).content.webPageURL == longest)
        expectRefused(.invalidRequest, "8192", request { $0.webPageURL = longest + "x" })
    }

    @Test("What else has a bound may be as long as that, and not a byte longer")
    func bounds() throws {
        typealias Change = (inout WireOfferRequest, Int) -> Void
        func text(_ count: Int) -> String { String(repeating: "é", count: count / 2) + (count % 2 == 0 ? "" : "e") }
        let fields: [(name: String, bound: Int, change: Change)] = [
            ("referrer", OfferedActivity.referrerBound, { $0.referrerURL = "https://a/" + text($1 - 10) }),
            ("target", OfferedActivity.targetBound, { $0.targetContentIdentifier = text($1) }),
            ("team", OfferedActivity.teamBound, { $0.team = text($1) }),
            ("application", OfferedActivity.applicationBound, { $0.application = text($1) }),
            ("required keys", OfferedActivity.requiredKeysBound, { $0.requiredUserInfoKeys = ["key", text($1 - 9)] }),
        ]
        #expect(fields.map(\.bound) == [1024, 256, 255, 255, 1024])
        for (name, bound, change) in fields {
            #expect(throws: Never.self, "\(name)") {
                try OfferedActivity(request { change(&$0, bound) }, document: nil)
            }
            expectRefused(.invalidRequest, name, request { change(&$0, bound + 1) })
        }
    }

    @Test("Selected entries of a folder are names, and of a bounded number")
    func selections() throws {
        func refuses(_ names: [String]) -> Bool {
            let error = #expect(throws: HandoffError.self) {
                _ = try OfferedActivity.selection(names.map { Data($0.utf8) })
            }
            return error?.code == .invalidRequest && error?.message.contains("offer all of the folder") == true
        }
        #expect(try OfferedActivity.selection([]) == .all)
        #expect(try OfferedActivity.selection([Data([0xFF]), Data("a".utf8)]).names == [Array("a".utf8), [0xFF]])
        #expect(refuses(["a", "b/c"]) && refuses([".."]) && refuses([""]) && refuses(["a\0"]))
        #expect(refuses((0...1000).map(String.init)))
    }

    @Test("Browsing the web is a web page without user info, offered or saved")
    func onlyPages() throws {
        func page(_ change: (inout WireOfferRequest) -> Void) -> WireOfferRequest {
            request {
                $0.type = ActivityType.browsingWeb
                $0.webPageURL = "https://example.org/"
                change(&$0)
            }
        }
        #expect(try OfferedActivity(page { _ in }, document: nil).kind == .web)
        expectRefused(.invalidRequest, "give it one", page { $0.webPageURL = "" })
        let info = WireDictionaryValue.with { $0.entries["line"] = .with { $0.integer = 12 } }
        expectRefused(.invalidRequest, "a type of your own", page { $0.userInfo = info })
        expectRefused(
            .invalidRequest, "no user info",
            page {
                $0.type = ""
                $0.userInfo = info
            })
        #expect(throws: Never.self) {
            try OfferedActivity(
                request {
                    $0.type = "org.example.note"
                    $0.userInfo = info
                }, document: nil)
        }
    }

    @Test("User info may have 48 KiB, exactly")
    func userInfo() throws {
        func userInfo(encoded size: Int) throws -> WireDictionaryValue {
            var info = WireDictionaryValue()
            func encoded(_ count: Int) throws -> Int {
                info.entries["data"] = .with { $0.data = Data(count: count) }
                return try info.serializedData().count
            }
            let overhead = try encoded(size) - size
            let reached = try encoded(size - overhead)
            #expect(reached == size)
            return info
        }
        #expect(OfferedActivity.userInfoBound == 49_152)
        let largest = try userInfo(encoded: OfferedActivity.userInfoBound)
        _ = try OfferedActivity(request { $0.userInfo = largest }, document: nil)
        let tooLarge = try userInfo(encoded: OfferedActivity.userInfoBound + 1)
        expectRefused(.userInfoTooLarge, "49153", request { $0.userInfo = tooLarge })
    }
}
