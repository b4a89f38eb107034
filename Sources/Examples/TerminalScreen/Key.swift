// SPDX-License-Identifier: Apache-2.0

/// A key of the keyboard, or a report of the terminal.
package enum Key: Sendable, Hashable {
    /// Typed or pasted characters, without control characters.
    case text(String)
    /// A letter with the control key, such as `c`.
    case control(Character)
    case enter, escape, tab, backTab, backspace, delete
    case up, down, left, right, home, end, pageUp, pageDown
    /// The user has come to this terminal, or has left it. Not every terminal reports this.
    case focusGained, focusLost
}

extension Key {
    /// The keys in bytes that a terminal sent at once.
    ///
    /// A terminal writes the sequence or the character of one key in one piece, so an escape at the end of the bytes is
    /// the escape key. Sequences of keys that are not in ``Key`` are dropped.
    static func keys(in bytes: some Sequence<UInt8>) -> [Key] {
        var rest = Array(bytes)[...]
        var keys: [Key] = []
        while let byte = rest.first {
            switch byte {
            case 0x1B: escape(&rest).map { keys.append($0) }
            case 0x00...0x1F, 0x7F:
                rest.removeFirst()
                control(byte).map { keys.append($0) }
            default:
                let run = rest.prefix { $0 >= 0x20 && $0 != 0x7F }
                rest = rest.dropFirst(run.count)
                keys.append(.text(String(decoding: run, as: UTF8.self)))
            }
        }
        return keys
    }

    private static func control(_ byte: UInt8) -> Key? {
        switch byte {
        case 0x08, 0x7F: .backspace
        case 0x09: .tab
        case 0x0A, 0x0D: .enter
        case 0x01...0x1A: .control(Character(UnicodeScalar(byte + 0x60)))
        default: nil
        }
    }

    /// ECMA-48 control sequences (`ESC [ parameters final`), and the `ESC O final` of a VT100's keypad.
    private static func escape(_ rest: inout ArraySlice<UInt8>) -> Key? {
        rest.removeFirst()
        guard let kind = rest.first, kind == UInt8(ascii: "[") || kind == UInt8(ascii: "O") else { return .escape }
        let body = rest.dropFirst()
        let parameters = body.prefix { (0x20...0x3F).contains($0) }
        guard let final = body.dropFirst(parameters.count).first else { return .escape }
        rest = body.dropFirst(parameters.count + 1)
        if final == UInt8(ascii: "~") {
            switch String(decoding: parameters.prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self) {
            case "1", "7": return .home
            case "3": return .delete
            case "4", "8": return .end
            case "5": return .pageUp
            case "6": return .pageDown
            default: return nil
            }
        }
        switch final {
        case UInt8(ascii: "A"): return .up
        case UInt8(ascii: "B"): return .down
        case UInt8(ascii: "C"): return .right
        case UInt8(ascii: "D"): return .left
        case UInt8(ascii: "H"): return .home
        case UInt8(ascii: "F"): return .end
        case UInt8(ascii: "Z"): return .backTab
        case UInt8(ascii: "I"): return .focusGained
        case UInt8(ascii: "O"): return .focusLost
        default: return nil
        }
    }
}
