// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TerminalScreen

/// The browser on the screen, and the effect of each key.
@MainActor
struct BrowserScreen: TerminalView {
    let browser: Browser
    /// The state of the node, for the last line.
    var node = ""
    /// The chosen link of the page.
    private var selection = 0
    /// The number of text lines that were shown last.
    private var page = 1

    init(_ browser: Browser) {
        self.browser = browser
    }

    /// - Returns: whether to go on.
    mutating func take(_ key: Key) -> Bool {
        let tab = browser.shown
        switch key {
        case .control("c"), .control("q"): return false
        case .focusGained: browser.isInFront(true)
        case .focusLost: browser.isInFront(false)
        case .tab: show(tab, offset: 1)
        case .backTab: show(tab, offset: -1)
        case .up: scroll(tab, by: -1)
        case .down: scroll(tab, by: 1)
        case .pageUp: scroll(tab, by: -page)
        case .pageDown: scroll(tab, by: page)
        case .control("n"): selection += 1
        case .enter:
            let links = Page(browser[tab].url).links
            guard !links.isEmpty else { break }
            browser[tab].go(to: links[selection % links.count].url)
            selection = 0
        case .escape:
            browser[tab].goBack()
            selection = 0
        case .text, .control, .backspace, .delete, .left, .right, .home, .end:
            _ = browser[tab].form.take(key)
        }
        return true
    }

    private mutating func show(_ tab: TabName, offset: Int) {
        let tabs = TabName.allCases
        let index = (tabs.firstIndex(of: tab) ?? 0) + offset + tabs.count
        browser.show(tabs[index % tabs.count])
        selection = 0
    }

    private func scroll(_ tab: TabName, by lines: Int) {
        let last = max(0, Page(browser[tab].url).text.count - 1)
        browser[tab].scroll = min(max(0, browser[tab].scroll + lines), last)
    }

    mutating func draw(on screen: TerminalScreen) {
        let (columns, rows) = screen.size
        let tab = browser.shown
        let state = browser[tab]
        let content = Page(state.url)
        var lines: [TerminalScreen.Line] = [
            .init(ScreenText.spread(" " + Self.strip(tab, columns), "", columns: columns), .reverse)
        ]
        let isRestoring = browser.arrivals[tab] == .restoring
        let notice = isRestoring ? "Finding the place in the page…" : browser.notice
        // A narrow terminal shows events rather than the state of the node.
        let isNarrow = ScreenText.columns(of: " " + notice + " " + node + " ") > columns
        let news = ScreenText.wrapped(notice.split(separator: " ").map(String.init), columns: columns, lines: 3)
        // A low terminal shows events rather than the keys.
        let help = rows < 14 ? [] : ScreenText.wrapped(Self.help, gap: "  ", columns: columns, lines: 3)
        let bottom = (isNarrow ? max(1, news.count) : 1) + help.count
        var cursor: (column: Int, row: Int)?
        switch browser.arrivals[tab] {
        case .preparing:
            lines += ["", .init("   Preparing \(tab.title): it is on its way…", .bold)]
        case .restoring, nil:
            lines += [.init(" " + state.url.absoluteString, .dim), .init(" " + content.title, .bold), ""]
            page = max(1, rows - 7 - bottom - content.links.count)
            lines += content.text.dropFirst(max(0, state.scroll)).prefix(page).map { .init("   " + $0) }
            while lines.count < rows - 3 - bottom - content.links.count { lines.append("") }
            for (index, link) in content.links.enumerated() {
                lines.append(.init(" \(index == selection % content.links.count ? "›" : " ") \(link.name)"))
            }
            let prompt = " Note: "
            cursor = (ScreenText.columns(of: prompt + state.form.text.prefix(state.form.cursor)), lines.count + 1)
            lines += ["", .init(prompt + state.form.text, .bold)]
        }
        while lines.count < rows - bottom { lines.append("") }
        if isNarrow, !news.isEmpty {
            lines += news.map { .init($0) }
        } else {
            lines.append(.init(ScreenText.spread(" " + notice, node + " ", columns: columns)))
        }
        lines += help.map { .init($0, .dim) }
        screen.draw(lines, cursor: cursor)
    }

    /// All tabs, or the shown one alone if there is no room for them.
    private static func strip(_ shown: TabName, _ columns: Int) -> String {
        let tabs = TabName.allCases
        let all = tabs.map { $0 == shown ? "[\($0.title)]" : " \($0.title) " }.joined(separator: " ")
        guard ScreenText.columns(of: " " + all) > columns, let place = tabs.firstIndex(of: shown) else { return all }
        return "[\(shown.title)] \(place + 1) of \(tabs.count)"
    }

    private static let help = [
        "Tab next", "↑↓ scroll", "^N link", "Enter follow", "Esc back", "^C end; type a note",
    ]
}

/// A browser of four tabs in the terminal, each of which continues on the user's other devices.
@main
@MainActor
struct MonkeyBrowser {
    static func main() async {
        await TerminalProgram.run("monkeybrowser") { redraw in
            let browser = try Browser()
            browser.onChange = redraw
            return (BrowserScreen(browser), browser.application)
        }
    }
}
