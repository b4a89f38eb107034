import BatonTestSupport
import Foundation
import Testing

/// MonkeyBrowser against an origin that a test plays, by `baton application`.
@Suite(
    .serialized, .enabled(if: Lab.unavailableReason == nil, "\(Lab.unavailableReason ?? "")"), .timeLimit(.minutes(3)))
struct LabLateOriginTests {
    @Test("An origin that never tells where the user is in the page is waited for 10 s, and the page stays")
    func neverTells() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let manifest = lab.folder.appendingPathComponent("origin.plist")
        let text = """
            <plist version="1.0"><dict>
                <key>CFBundleIdentifier</key><string>org.example.origin</string>
                <key>BatonTeam</key><string>BATONSAMPLES</string>
            </dict></plist>
            """
        try Data(text.utf8).write(to: manifest)
        let origin = try lab.start(1, "application", "--manifest", manifest.path)
        try await origin.program.line { $0.contains(#""event":"ready""#) }
        let page = #"{"url":{"$url":"https://coffee.example.org/beans"}}"#
        origin.program.send(
            #"{"do":"becomeCurrent","activity":"a","type":"org.baton.monkeybrowser.coffeebreak","title":"Arabica","#
                + #""supportsContinuationStreams":true,"userInfo":\#(page)}"#)
        let browser = LabTerminal(lab, 2)
        try await browser.open("monkeybrowser")
        try await browser.shows("[Weather]", "connected to the node")
        let offered = try await lab.watch(2).listed("Arabica")
        let accept = try lab.start(2, "accept", offered.id ?? "")
        let question = try await origin.program.line(within: .seconds(40)) { $0.contains(#""event":"willSave""#) }
        let asked = try JSONSerialization.jsonObject(with: Data(question.text.utf8)) as? [String: Any]
        origin.program.send(#"{"do":"saved","request":\#(asked?["request"] ?? 0)}"#)
        #expect(try await accept.end().status == 0)

        // It opens its stream, and says nothing on it.
        try await origin.program.line { $0.contains(#""event":"streamOpened""#) }
        let began = ContinuousClock.now
        try await browser.shows("[Coffee Break]", "Finding the place")
        try await browser.shows("without the place in it", "[Coffee Break]", within: .seconds(30))
        let waited = ContinuousClock.now - began
        #expect(waited > .seconds(8), "\(waited)")
        #expect(try await !browser.screen().contains("Finding the place"))
    }
}
