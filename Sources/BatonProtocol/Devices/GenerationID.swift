// SPDX-License-Identifier: Apache-2.0

/// Which keys: the number of a generation, and the list that began it.
package struct GenerationID: Sendable, Hashable, CustomStringConvertible {
    /// The generation's number, from 0.
    package let number: UInt32

    /// The list that began it; nil for generation 0, which no list began.
    package let list: ListDigest?

    package init(number: UInt32, list: ListDigest?) {
        self.number = number
        self.list = list
    }

    /// `2/0123456789abcdef`, or `0`.
    package var description: String { list.map { "\(number)/\($0)" } ?? "\(number)" }

    /// The order in which a device prefers them: newer first, then the lower digest, so that all devices that hold the
    /// same lists seal with the same keys.
    package func precedes(_ other: GenerationID) -> Bool {
        number != other.number ? number > other.number : list.map(\.rawValue) ?? 0 < other.list.map(\.rawValue) ?? 0
    }
}

/// Eight bytes that tell one revocation list from another.
package struct ListDigest: Sendable, Hashable, CustomStringConvertible {
    /// The eight bytes, read big endian.
    package let rawValue: UInt64

    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// Reads the 16 hexadecimal digits of ``description``; nil for anything else.
    package init?(_ text: some StringProtocol) {
        guard text.utf8.count == 16, let value = UInt64(text, radix: 16), !text.hasPrefix("+") else { return nil }
        rawValue = value
    }

    /// Sixteen lower-case hexadecimal digits.
    package var description: String {
        let digits = String(rawValue, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }
}
