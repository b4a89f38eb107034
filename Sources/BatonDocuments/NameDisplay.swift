// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// How names that came from a disk or from a peer are shown to people.
///
/// A file's name is bytes. Shown raw it could move the cursor, change the terminal's title or, with the controls of
/// right-to-left writing, pretend another extension.
package enum NameDisplay {
    /// How many marks one character may have on it: 5. Scripts stack four at the most; more of them leave their line.
    package static let markLimit = 5

    /// The name with every character escaped that does not show as itself.
    ///
    /// Characters that are unsafe to show, controls and those of no meaning among them, and marks beyond ``markLimit``
    /// become `\u{…}`, bytes that are no UTF-8 become `\xNN`, and a backslash is doubled, so that the result is
    /// unambiguous. The joiners and variation selectors that scripts and emoji need stay.
    ///
    /// - Parameter isSentence: names in it are escaped by now, so that a backslash stays as it is.
    package static func escaped(_ bytes: some Collection<UInt8>, isSentence: Bool = false) -> String {
        var shown = ""
        var marks = 0
        var parser = Unicode.UTF8.ForwardParser()
        var rest = bytes.makeIterator()
        var position = bytes.startIndex
        while true {
            switch parser.parseScalar(from: &rest) {
            case .valid(let encoded):
                let scalar = Unicode.UTF8.decode(encoded)
                marks = scalar.isMark ? marks + 1 : 0
                if scalar == "\\", !isSentence {
                    shown += "\\\\"
                } else if scalar.isUnsafeToShow || marks > markLimit {
                    shown += "\\u{\(String(scalar.value, radix: 16))}"
                } else {
                    shown.unicodeScalars.append(scalar)
                }
                bytes.formIndex(&position, offsetBy: encoded.count)
            case .error(let length):
                for _ in 0..<length {
                    let byte = bytes[position]
                    shown += byte < 16 ? "\\x0" : "\\x"
                    shown += String(byte, radix: 16)
                    bytes.formIndex(after: &position)
                }
            case .emptyInput:
                return shown
            }
        }
    }
}

extension Unicode.Scalar {
    fileprivate var isMark: Bool {
        let category = properties.generalCategory
        return category == .nonspacingMark || category == .enclosingMark
    }
}
