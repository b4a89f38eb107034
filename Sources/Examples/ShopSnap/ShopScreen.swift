// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TerminalScreen

/// The shop on the screen, and the effect of each key.
@MainActor
struct ShopScreen: TerminalView {
    let shop: Shop
    /// The state of the node, for the first line.
    var node = ""
    /// The chosen item.
    private var selection = 0

    init(_ shop: Shop) {
        self.shop = shop
    }

    /// - Returns: whether to go on.
    mutating func take(_ key: Key) -> Bool {
        let items = shop.list.shown
        let isTyping = !shop.draft.field.isEmpty
        switch key {
        case .control("c"), .control("q"): return false
        case .focusGained: shop.isInFront(true)
        case .focusLost: shop.isInFront(false)
        case .up: selection = max(0, selection - 1)
        case .down: selection = min(max(0, items.count - 1), selection + 1)
        case .enter where isTyping:
            shop.finishDraft()
            selection = max(0, shop.list.shown.count - 1)
        case .escape: shop.dropDraft()
        case .enter where items.indices.contains(selection):
            let name = items[selection].name
            shop.draft = Shop.Draft(field: TextField(name), replaces: name)
        case .text(" ") where !isTyping && items.indices.contains(selection):
            let item = items[selection]
            shop.set(item.name, to: item.state == .bought ? .wanted : .bought)
        case .delete where !isTyping && items.indices.contains(selection):
            shop.set(items[selection].name, to: .removed)
            selection = min(selection, max(0, items.count - 2))
        default: if shop.draft.field.take(key) { shop.notice = "" }
        }
        return true
    }

    func draw(on screen: TerminalScreen) {
        let (columns, rows) = screen.size
        let items = shop.list.shown
        let bought = items.count { $0.state == .bought }
        let count = items.isEmpty ? "nothing to buy" : "\(items.count - bought) to buy, \(bought) bought"
        var lines: [TerminalScreen.Line] = [
            .init(Self.header(count, node, columns), .reverse), "",
        ]
        let notice = ScreenText.wrapped(shop.notice.split(separator: " ").map(String.init), columns: columns, lines: 3)
        let help = ScreenText.wrapped(Self.help, gap: "  ", columns: columns, lines: 3)
        let bottom = 2 + max(1, notice.count) + help.count
        let room = max(1, rows - bottom - 3)
        let first = max(0, min(selection - room / 2, items.count - room))
        for (index, item) in items.enumerated().dropFirst(first).prefix(room) {
            let mark = item.state == .bought ? "✓" : "○"
            let style: TerminalScreen.Line.Style = item.state == .bought ? .dim : .plain
            lines.append(.init(" \(index == selection ? "›" : " ") \(mark) \(item.name)", style))
        }
        if items.isEmpty { lines.append(.init("   The list is empty: type what you need.", .dim)) }
        while lines.count < rows - bottom { lines.append("") }
        let action = shop.draft.replaces == nil ? " Add" : " Change"
        let prompt = shop.waiting.isEmpty ? action + ": " : "\(action) (\(shop.waiting.count) more after it): "
        let field = shop.draft.field
        let place = ScreenText.columns(of: prompt + field.text.prefix(field.cursor))
        // The beginning of a long text makes room for its cursor.
        let hidden = max(0, place - columns + 1)
        lines.append("")
        lines.append(.init(prompt + field.text.dropFirst(hidden), .bold))
        let row = lines.count - 1
        lines += notice.isEmpty ? [""] : notice.map { .init($0) }
        lines += help.map { .init($0, .dim) }
        screen.draw(lines, cursor: (place - hidden, row))
    }

    private static let help = [
        "↑↓ choose", "Space bought", "Enter add or change", "Del take off", "Esc drop", "^C end",
    ]

    /// A narrow terminal leaves out the name, and then the state of the node.
    private static func header(_ count: String, _ node: String, _ columns: Int) -> String {
        let choices = [(" ShopSnap · " + count, node + " "), (" " + count, node + " "), (" " + count, "")]
        let fitting = choices.first { ScreenText.columns(of: $0 + " " + $1) <= columns }
        return ScreenText.spread(fitting?.0 ?? count, fitting?.1 ?? "", columns: columns)
    }
}

/// A shopping list in the terminal that continues on the user's other devices.
@main
@MainActor
struct ShopSnap {
    static func main() async {
        await TerminalProgram.run("shopsnap") { redraw in
            let shop = try Shop(environment: ProcessInfo.processInfo.environment)
            shop.onChange = redraw
            return (ShopScreen(shop), shop.application)
        }
    }
}
