// SPDX-License-Identifier: Apache-2.0

/// The bounds of a manifest and of its file. Anything larger is refused with a sentence.
///
/// Together they keep a manifest in memory below 512 KiB, and a common one below 4.
package enum ManifestBounds {
    /// The most bytes of an `Info.plist`, its entitlements, a desktop entry or a registered manifest.
    package static let fileSize = 256 << 10
    /// Bytes of an identifier, so that a file can be named after it.
    package static let identifier = 200
    /// Bytes of a name.
    package static let name = 255
    /// Bytes of a team.
    package static let team = 255
    /// Bytes of an activity type; activities have the same.
    package static let typeName = 96
    /// Activity types, and document types as well.
    package static let types = 128
    /// Extensions, and content types as well, of one document type.
    package static let documentKinds = 64
    /// Bytes of an extension or a content type.
    package static let documentKind = 255
    /// Associated domains.
    package static let associatedDomains = 32
    /// Words of the command that starts it.
    package static let words = 128
    /// Bytes of the command that starts it.
    package static let command = 16 << 10
    /// Bytes of the id of a desktop entry.
    package static let desktopEntry = 255
}

/// Names that are written in reverse DNS style.
package enum DottedName {
    /// Whether a text can be the type of an activity: 1 to 96 bytes of ASCII letters, digits, `.`, `-` and `_`.
    package static func isActivityType(_ text: String) -> Bool {
        (1...ManifestBounds.typeName).contains(text.utf8.count) && isPlain(text)
    }

    /// Whether a text can be the identifier of an application: 1 to 200 bytes of these characters, the first not a dot,
    /// so that it can name a file.
    package static func isIdentifier(_ text: String) -> Bool {
        (1...ManifestBounds.identifier).contains(text.utf8.count) && isPlain(text) && !text.hasPrefix(".")
    }

    private static func isPlain(_ text: String) -> Bool {
        text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            case _: false
            }
        }
    }
}
