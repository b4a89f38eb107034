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

/// The user's place in a tab. It goes to another device through a continuation stream, because it may be larger than
/// user info.
struct TabState: Codable, Hashable, Sendable {
    /// The most pages that are remembered. Beyond it the oldest is forgotten.
    static let historyBound = 100
    /// The most bytes of a state from another device.
    static let sizeBound = 256 << 10

    /// The addresses that the user visited. The last one is shown.
    private(set) var history: [URL]
    /// The first line of the page's text that is shown.
    var scroll = 0
    /// The text in the page's form, with the cursor.
    private(set) var formText = ""
    private(set) var formCursor = 0
    /// Earlier texts of the form that another device had as well, the newest last.
    private var sharedTexts: [String] = []
    /// The most texts that are remembered. Beyond it the oldest are forgotten.
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

    /// Whether place and text are the same in another state.
    func isWhere(_ other: TabState) -> Bool {
        (history, scroll, formText, formCursor) == (other.history, other.scroll, other.formText, other.formCursor)
    }

    /// Notes that another device has the text of this state.
    mutating func share(_ state: TabState) {
        guard state.url == url else { return }
        sharedTexts.removeAll { $0 == state.formText }
        sharedTexts = sharedTexts.suffix(Self.sharedBound - 1) + [state.formText]
    }

    /// Whether this state can replace another one without losing text.
    func goesOn(from other: TabState) -> Bool {
        ([formText, ""] + sharedTexts).contains(other.formText)
    }

    /// The bytes that go through the stream.
    var encoded: Data {
        get throws { try JSONEncoder().encode(self) }
    }

    /// - Returns: `nil` if the bytes are not a state of this page.
    init?(_ data: Data, of url: URL) {
        guard let state = try? JSONDecoder().decode(TabState.self, from: data), state.history.last == url,
            state.history.count <= Self.historyBound, state.sharedTexts.count <= Self.sharedBound,
            (0...1_000_000).contains(state.scroll)
        else { return nil }
        self = state
    }
}
