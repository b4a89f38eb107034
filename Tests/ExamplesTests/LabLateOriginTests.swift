// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import TerminalScreen
import Testing

@testable import MonkeyBrowser

/// MonkeyBrowser against an origin that a test plays, by `baton application`.
@Suite(.serialized, .lab, .timeLimit(.minutes(3)))
struct LabLateOriginTests {
    /// Two hosts. The page of the first has come to the browser on the second, which has asked for the place in it.
    private struct Scene {
        let lab: HandoffLab
        let origin: LabProgram
        let browser: LabTerminal
        /// The name of the stream on which the origin is asked.
        let stream: String
    }

    private static let page = URL(string: "https://coffee.example.org/beans")

    private func scene(of lab: HandoffLab) async throws -> Scene {
        _ = try await lab.startNodes()
        let manifest = lab.folder.appendingPathComponent("origin.plist")
        let text = """
            <plist version="1.0"><dict>
                <key>CFBundleIdentifier</key><string>org.example.origin</string>
                <key>BatonTeam</key><string>BATONSAMPLES</string>
            </dict></plist>
            """
        try Data(text.utf8).write(to: manifest)
        let origin = try lab.start(1, "application", "--manifest", manifest.path).program
        try await origin.line { $0.contains(#""event":"ready""#) }
        let page = #"{"url":{"$url":"\#(Self.page?.absoluteString ?? "")"}}"#
        origin.send(
            #"{"do":"becomeCurrent","activity":"a","type":"org.baton.monkeybrowser.coffeebreak","title":"Arabica","#
                + #""supportsContinuationStreams":true,"userInfo":\#(page)}"#)
        let browser = LabTerminal(lab, 2)
        try await browser.open("monkeybrowser")
        try await browser.shows("[Weather]", "connected to the node")
        let offered = try await lab.watch(2).listed("Arabica")
        let accept = try lab.start(2, "accept", offered.id ?? "")
        let question = try await origin.line(within: .seconds(40)) { $0.contains(#""event":"willSave""#) }
        origin.send(#"{"do":"saved","request":\#(try member("request", of: question.text))}"#)
        #expect(try await accept.end().status == 0)
        let opened = try await origin.line { $0.contains(#""event":"streamOpened""#) }
        try await browser.shows("[Coffee Break]", "Finding the place")
        return Scene(lab: lab, origin: origin, browser: browser, stream: try member("stream", of: opened.text))
    }

    private func member(_ name: String, of line: String) throws -> String {
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        return "\(try #require(object?[name]))"
    }

    @Test("An origin that never tells where the user is in the page is waited for 10 s, and the page stays")
    func neverTells() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let began = ContinuousClock.now
        let scene = try await scene(of: lab)
        try await scene.browser.shows("without the place in it", "[Coffee Break]", within: .seconds(30))
        let waited = ContinuousClock.now - began
        #expect(waited > .seconds(8), "\(waited)")
        #expect(try await !scene.browser.screen().contains("Finding the place"))
    }

    @Test("What is typed into the page while its place is still on the way stays, and nothing is said of it")
    func typedMeanwhile() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let scene = try await scene(of: lab)
        try await scene.browser.type("mine")
        try await scene.browser.shows("Note: mine")
        var place = TabState(try #require(Self.page))
        place.form = TextField("theirs")
        let data = try place.encoded.base64EncodedString()
        scene.origin.send(#"{"do":"write","stream":"\#(scene.stream)","data":"\#(data)"}"#)
        scene.origin.send(#"{"do":"finish","stream":"\#(scene.stream)"}"#)
        try await eventually("the place has come") {
            try await !scene.browser.screen().contains("Finding the place")
        }
        try await scene.browser.shows("[Coffee Break]", "Note: mine")
        #expect(!scene.browser.hasShown("without the place"))
    }
}
