// SPDX-License-Identifier: Apache-2.0

/// A line of text that the user is typing, with its cursor.
package struct TextField: Sendable, Hashable {
    /// The most bytes of its text, in UTF-8.
    package static let bound = 100

    package private(set) var text: String
    /// The number of characters before the cursor.
    package private(set) var cursor: Int

    /// - Parameters:
    ///   - text: cut to ``bound``.
    ///   - cursor: clamped to the text. `nil`, the default: the end of the text.
    package init(_ text: String = "", cursor: Int? = nil) {
        self.text = Self.cut(text)
        self.cursor = min(max(0, cursor ?? .max), self.text.count)
    }

    package var isEmpty: Bool { text.isEmpty }

    /// - Returns: whether the key edits a line of text.
    package mutating func take(_ key: Key) -> Bool {
        switch key {
        case .text(let typed): insert(typed)
        case .backspace: remove(at: cursor - 1)
        case .delete: remove(at: cursor)
        case .left: cursor = max(0, cursor - 1)
        case .right: cursor = min(text.count, cursor + 1)
        case .home, .control("a"): cursor = 0
        case .end, .control("e"): cursor = text.count
        case .control, .enter, .escape, .tab, .backTab, .up, .down, .pageUp, .pageDown, .focusGained, .focusLost:
            return false
        }
        return true
    }

    private mutating func insert(_ typed: String) {
        let before = text.prefix(cursor) + typed
        let whole = String(before + text.dropFirst(cursor))
        guard whole.utf8.count <= Self.bound else { return }
        text = whole
        // Counted anew: typed text may have joined the character before it.
        cursor = String(before).count
    }

    private mutating func remove(at index: Int) {
        guard (0..<text.count).contains(index) else { return }
        text.remove(at: text.index(text.startIndex, offsetBy: index))
        cursor = index
    }

    private static func cut(_ text: String) -> String {
        var text = text
        while text.utf8.count > bound { text.removeLast() }
        return text
    }
}
