import FoundationEssentials
import TerminalScreen

/// What the user sees of the shop, and what keys do.
@MainActor
struct ShopScreen {
    let shop: Shop
    /// Where the node is, for the first line.
    var node = ""
    /// Which of the items shown is chosen.
    private var selection = 0
    private var isEnding = false

    init(_ shop: Shop) {
        self.shop = shop
    }

    /// - Returns: whether to go on.
    mutating func take(_ key: Key, suspend: () -> Void) -> Bool {
        let items = shop.list.shown
        let isTyping = !shop.draft.field.isEmpty
        switch key {
        case .control("c"), .control("q"): return false
        case .control("z"): suspend()
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
            .init(ScreenText.spread(" ShopSnap · " + count, node + " ", columns: columns), .reverse), "",
        ]
        let room = max(1, rows - 7)
        let first = max(0, min(selection - room / 2, items.count - room))
        for (index, item) in items.enumerated().dropFirst(first).prefix(room) {
            let mark = item.state == .bought ? "✓" : "○"
            let style: TerminalScreen.Line.Style = item.state == .bought ? .dim : .plain
            lines.append(.init(" \(index == selection ? "›" : " ") \(mark) \(item.name)", style))
        }
        if items.isEmpty { lines.append(.init("   The list is empty: type what you need.", .dim)) }
        while lines.count < rows - 4 { lines.append("") }
        let prompt = shop.draft.replaces == nil ? " Add: " : " Change: "
        let field = shop.draft.field
        let place = ScreenText.columns(of: prompt + field.text.prefix(field.cursor))
        // The beginning of a long text makes room for its cursor.
        let hidden = max(0, place - columns + 1)
        lines.append("")
        lines.append(.init(prompt + field.text.dropFirst(hidden), .bold))
        lines.append(.init(" " + shop.notice))
        lines.append(
            .init(" ↑↓ choose  Space bought  Enter add or change  Del take off  Esc drop  ^C end", .dim))
        screen.draw(lines, cursor: (place - hidden, lines.count - 3))
    }
}
