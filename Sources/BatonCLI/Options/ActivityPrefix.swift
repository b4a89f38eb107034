// SPDX-License-Identifier: Apache-2.0

/// The beginning of an activity's id, as a person types it: 1 to 32 hexadecimal digits.
struct ActivityPrefix: Sendable, Equatable {
    /// Lower case.
    let text: String

    init?(_ text: String) {
        guard (1...32).contains(text.utf8.count), text.allSatisfy({ $0.isASCII && $0.isHexDigit }) else { return nil }
        self.text = text.lowercased()
    }

    static func problem(_ text: String) -> String {
        "\"\(SafeText.escaped(text))\" is no activity id: one has up to 32 of 0-9 and a-f, as `baton activities` shows"
    }
}
