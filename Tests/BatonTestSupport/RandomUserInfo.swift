// SPDX-License-Identifier: Apache-2.0

package import Baton
import Foundation

/// Bytes that are the same for the same user info, and for no other: maps and sets in order, numbers by their bits.
package enum CanonicalUserInfo {
    /// The bytes of it.
    package static func bytes(_ info: UserInfo) -> [UInt8] { bytes(.dictionary(info.entries)) }

    private static func bytes(_ value: UserInfoValue) -> [UInt8] {
        func tagged(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
            [tag] + withUnsafeBytes(of: UInt32(content.count)) { Array($0) } + content
        }
        func bits(_ value: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: value) { Array($0) } }
        switch value {
        case .null: return tagged(0, [])
        case .boolean(let value): return tagged(1, [value ? 1 : 0])
        case .integer(let value): return tagged(2, bits(value))
        case .unsignedInteger(let value): return tagged(3, bits(value))
        case .real(let value): return tagged(4, bits(value.bitPattern))
        case .string(let value): return tagged(5, Array(value.utf8))
        case .data(let value): return tagged(6, Array(value))
        case .date(let value): return tagged(7, bits(value.timeIntervalSinceReferenceDate.bitPattern))
        case .url(let value): return tagged(8, Array(value.absoluteString.utf8))
        case .uuid(let value): return tagged(9, withUnsafeBytes(of: value.uuid) { Array($0) })
        case .array(let elements): return tagged(10, elements.flatMap(bytes))
        case .set(let elements):
            return tagged(11, elements.map(bytes).sorted { $0.lexicographicallyPrecedes($1) }.flatMap { $0 })
        case .dictionary(let entries):
            let entries = entries.map { bytes(.string($0.key)) + bytes($0.value) }
            return tagged(12, entries.sorted { $0.lexicographicallyPrecedes($1) }.flatMap { $0 })
        }
    }
}

/// Random user info of all of the types, nested, for round trips. Equal seeds make equal user info.
package enum RandomUserInfo {
    /// The next one of a generator.
    package static func make(_ generator: inout SeededGenerator) -> UserInfo {
        var info = UserInfo()
        for index in 0..<Int.random(in: 0...8, using: &generator) {
            info["\(index)" + text(&generator)] = value(&generator, depth: 4)
        }
        return info
    }

    private static func value(_ generator: inout SeededGenerator, depth: Int) -> UserInfoValue {
        func elements(_ generator: inout SeededGenerator) -> [UserInfoValue] {
            (0..<Int.random(in: 0...4, using: &generator)).map { _ in value(&generator, depth: depth - 1) }
        }
        switch Int.random(in: 0..<(depth > 0 ? 13 : 10), using: &generator) {
        case 0: return .null
        case 1: return .boolean(.random(using: &generator))
        case 2: return .integer(Bool.random(using: &generator) ? 1 : Int64(bitPattern: generator.next()))
        case 3: return .unsignedInteger(generator.next() | 1 << 63)
        case 4: return .real(Bool.random(using: &generator) ? 1 : finite(&generator))
        case 5: return .string(text(&generator))
        case 6: return .data(Data(generator.bytes(Int.random(in: 0...20, using: &generator))))
        case 7: return .date(Date(timeIntervalSinceReferenceDate: finite(&generator)))
        case 8:
            return URL(string: "https://example.org/\(generator.next())?q=\(generator.next())").map { .url($0) }
                ?? .null
        case 9:
            var uuid = UUID().uuid
            let bytes = generator.bytes(16)
            withUnsafeMutableBytes(of: &uuid) { $0.copyBytes(from: bytes) }
            return .uuid(UUID(uuid: uuid))
        case 10: return .array(elements(&generator))
        case 11: return .set(Set(elements(&generator)))
        default:
            return .dictionary(
                Dictionary(elements(&generator).enumerated().map { ("k\($0.offset)", $0.element) }) { first, _ in first
                })
        }
    }

    private static func finite(_ generator: inout SeededGenerator) -> Double {
        let value = Double(bitPattern: generator.next())
        return value.isFinite ? value : -0.0
    }

    private static func text(_ generator: inout SeededGenerator) -> String {
        String(
            (0..<Int.random(in: 0...6, using: &generator)).map { _ in
                "aZ9 \"\\/ü漢🙂\u{0}\n.$".randomElement(using: &generator) ?? "a"
            })
    }
}
