// SPDX-License-Identifier: Apache-2.0

import Foundation
import TerminalScreen
import Testing

@testable import MonkeyBrowser

@Suite("A tab of the browser")
struct TabStateTests {
    @Test("The state of a page comes back as it went")
    func roundTrip() throws {
        var state = TabState(TabName.work.home)
        state.go(to: URL(string: "https://work.example.org/oldest")!)
        state.scroll = 12
        for key in ["r", "u", "n"] { _ = state.form.take(.text(key)) }
        _ = state.form.take(.left)
        let copy = TabState(try state.encoded, of: state.url)
        #expect(copy == state)
        #expect(copy?.form.cursor == 2)
        state.goBack()
        #expect(state.url == TabName.work.home)
        #expect(state.form.isEmpty)
        state.goBack()
        #expect(state.url == TabName.work.home)
    }

    @Test("A state of another page, or that no tab can have, is refused")
    func refused() throws {
        let home = TabName.work.home
        let state = try TabState(home).encoded
        #expect(TabState(state, of: TabName.weather.home) == nil)
        for text in ["", "{}", "[]", #"{"history":[],"scroll":0,"formText":"","formCursor":0}"#] {
            #expect(TabState(Data(text.utf8), of: home) == nil)
        }
        let far = String(decoding: state, as: UTF8.self).replacing("\"scroll\":0", with: "\"scroll\":-1")
        #expect(far.contains("-1"))
        #expect(TabState(Data(far.utf8), of: home) == nil)
    }

    @Test("The history is bounded")
    func history() {
        var state = TabState(TabName.work.home)
        for number in 0..<TabState.historyBound * 2 { state.go(to: URL(string: "https://work.example.org/\(number)")!) }
        #expect(state.history.count == TabState.historyBound)
        #expect(state.url.path() == "/199")
    }

    @Test("What a note goes on from is bounded, and forgotten with the page")
    func shared() throws {
        var state = TabState(TabName.work.home)
        var states: [TabState] = []
        for number in 0...TabState.sharedBound {
            state.form = TextField("note \(number)")
            states.append(state)
            state.share(state)
        }
        state.form = TextField("note")
        #expect(states.dropFirst().allSatisfy { state.goesOn(from: $0) } && !state.goesOn(from: states[0]))
        #expect(TabState(try state.encoded, of: state.url) == state)
        state.go(to: try #require(URL(string: "https://work.example.org/other")))
        #expect(states.allSatisfy { !state.goesOn(from: $0) })
    }

    @Test("Every link of the tabs leads to a page", arguments: TabName.allCases)
    func links(_ tab: TabName) {
        var seen: Set<URL> = []
        var waiting = [tab.home]
        while let url = waiting.popLast() {
            guard seen.insert(url).inserted else { continue }
            let page = Page(url)
            #expect(!page.title.hasPrefix("Nothing at"), "\(url)")
            waiting += page.links.map(\.url)
        }
        #expect(seen.count > 1)
    }
}
