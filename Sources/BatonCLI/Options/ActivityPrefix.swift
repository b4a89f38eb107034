// SPDX-License-Identifier: Apache-2.0

/// The beginning of an activity's id: 1 to 32 hexadecimal digits.
struct ActivityPrefix: Sendable, Equatable {
    /// The digits in lower case.
    let text: String

    init?(_ text: String) {
        guard (1...32).contains(text.utf8.count), text.allSatisfy({ $0.isASCII && $0.isHexDigit }) else { return nil }
        self.text = text.lowercased()
    }

    static func problem(_ text: String) -> String {
        "\"\(SafeText.escaped(text))\" is no activity id: give 1 to 32 digits of 0-9 and a-f, see `baton activities`"
    }
}
