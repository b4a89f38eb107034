// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TerminalScreen

/// A tab of the browser, with an activity type of its own.
enum TabName: String, CaseIterable {
    case weather, favorite, coffeeBreak, work

    var title: String {
        switch self {
        case .weather: "Weather"
        case .favorite: "Favorite"
        case .coffeeBreak: "Coffee Break"
        case .work: "Work"
        }
    }

    var activityType: String { "org.baton.monkeybrowser." + rawValue.lowercased() }

    var home: URL {
        switch self {
        case .weather: URL(string: "https://weather.example.org/")!
        case .favorite: URL(string: "https://monkeys.example.org/")!
        case .coffeeBreak: URL(string: "https://coffee.example.org/")!
        case .work: URL(string: "https://work.example.org/")!
        }
    }
}

/// Where the user is in a tab. It goes to another device through a continuation stream, where it has no limit that a
/// page could meet; the user info has the address alone.
struct TabState: Codable, Hashable, Sendable {
    /// Pages that are remembered: the oldest is forgotten beyond it.
    static let historyBound = 100
    /// The most bytes of a state that is read.
    static let sizeBound = 256 << 10

    /// The addresses that the user came by, the one that is shown last.
    private(set) var history: [URL]
    /// The first line of the page's text that is shown.
    var scroll = 0
    /// What the user has typed into the page's form, and where.
    private(set) var formText = ""
    private(set) var formCursor = 0
    /// What was typed in the form when another device had it as well, the last one last: the text goes on from these.
    private var sharedTexts: [String] = []
    /// Different ones that are remembered: of more, the oldest are forgotten.
    static let sharedBound = 16

    init(_ home: URL) {
        history = [home]
    }

    var url: URL { history[history.count - 1] }

    var form: TextField {
        get { TextField(formText, cursor: formCursor) }
        set { (formText, formCursor) = (newValue.text, newValue.cursor) }
    }

    mutating func go(to url: URL) {
        history = history.suffix(Self.historyBound - 1) + [url]
        begin()
    }

    mutating func goBack() {
        guard history.count > 1 else { return }
        history.removeLast()
        begin()
    }

    private mutating func begin() {
        (scroll, form, sharedTexts) = (0, TextField(), [])
    }

    /// Whether the user sees and has typed the same in another state, whoever else has it by now.
    func isWhere(_ other: TabState) -> Bool {
        (history, scroll, formText, formCursor) == (other.history, other.scroll, other.formText, other.formCursor)
    }

    /// Another device has what was typed in this state of the page.
    mutating func share(_ state: TabState) {
        guard state.url == url else { return }
        sharedTexts.removeAll { $0 == state.formText }
        sharedTexts = sharedTexts.suffix(Self.sharedBound - 1) + [state.formText]
    }

    /// Whether nothing that is typed in another state of the page is lost when this one takes its place.
    func goesOn(from other: TabState) -> Bool {
        ([formText, ""] + sharedTexts).contains(other.formText)
    }

    /// What goes through the stream.
    var encoded: Data {
        get throws { try JSONEncoder().encode(self) }
    }

    /// - Returns: `nil` for what is no state of this page, whoever sent it.
    init?(_ data: Data, of url: URL) {
        guard let state = try? JSONDecoder().decode(TabState.self, from: data), state.history.last == url,
            state.history.count <= Self.historyBound, state.sharedTexts.count <= Self.sharedBound,
            (0...1_000_000).contains(state.scroll)
        else { return nil }
        self = state
    }
}
