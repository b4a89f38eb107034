// SPDX-License-Identifier: Apache-2.0

import SystemPackage

/// The requirements on every manifest, from any kind of file.
enum ManifestCheck {
    static func identifier(_ text: String) throws(ApplicationManifestError) {
        guard !text.isEmpty else { throw .init("it has no identifier") }
        guard DottedName.isIdentifier(text) else {
            throw .init(
                "\"\(text)\" is no identifier: one has up to \(ManifestBounds.identifier) letters, digits, dots, "
                    + "hyphens and underscores, such as org.example.editor")
        }
    }

    static func name(_ text: String) throws(ApplicationManifestError) {
        guard !text.isEmpty else { throw .init("it has no name") }
        try length(text, atMost: ManifestBounds.name, "name")
        try line(text, "name")
    }

    static func team(_ text: String) throws(ApplicationManifestError) {
        try length(text, atMost: ManifestBounds.team, "team")
        try line(text, "team")
    }

    static func activityTypes(_ types: [String]) throws(ApplicationManifestError) {
        try count(types.count, atMost: ManifestBounds.types, "activity types")
        for type in types where !DottedName.isActivityType(type) {
            throw .init(
                "\"\(type)\" is no activity type: one has up to \(ManifestBounds.typeName) letters, digits, dots, "
                    + "hyphens and underscores")
        }
    }

    static func documentTypes(_ types: [DocumentType]) throws(ApplicationManifestError) {
        try count(types.count, atMost: ManifestBounds.types, "document types")
        for type in types {
            for (kinds, noun) in [(type.fileExtensions, "file extension"), (type.contentTypes, "content type")] {
                try count(kinds.count, atMost: ManifestBounds.documentKinds, noun + "s of one document type")
                for kind in kinds {
                    guard !kind.isEmpty else { throw .init("a \(noun) is empty") }
                    try length(kind, atMost: ManifestBounds.documentKind, noun)
                    try line(kind, noun)
                }
            }
        }
    }

    static func command(_ words: [String]) throws(ApplicationManifestError) {
        guard let program = words.first else { return }
        guard !program.isEmpty else { throw .init("the program of its command is empty") }
        try count(words.count, atMost: ManifestBounds.words, "words of its command")
        let bytes = words.reduce(0) { $0 + $1.utf8.count + 1 }
        guard bytes <= ManifestBounds.command else {
            throw .init("its command has \(bytes) bytes; \(ManifestBounds.command) is the most")
        }
        // The system ends an argument there.
        guard words.allSatisfy({ !$0.utf8.contains(0) }) else {
            throw .init("its command holds a character of code 0")
        }
    }

    static func desktopEntry(_ id: String) throws(ApplicationManifestError) {
        guard !id.isEmpty else { throw .init("the id of its desktop entry is empty") }
        try length(id, atMost: ManifestBounds.desktopEntry, "desktop entry's id")
        try line(id, "desktop entry's id")
    }

    static func count(_ count: Int, atMost bound: Int, _ nouns: String) throws(ApplicationManifestError) {
        guard count <= bound else { throw .init("it has \(count) \(nouns); \(bound) is the most") }
    }

    private static func length(_ text: String, atMost bound: Int, _ noun: String) throws(ApplicationManifestError) {
        guard text.utf8.count <= bound else {
            throw .init("its \(noun) has \(text.utf8.count) bytes; \(bound) is the most")
        }
    }

    /// Names are printed and kept in files of lines.
    private static func line(_ text: String, _ noun: String) throws(ApplicationManifestError) {
        guard text.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }) else {
            throw .init("its \(noun) holds a control character")
        }
    }
}

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

    /// Whether a text has only ASCII letters, digits, `.`, `-` and `_`.
    package static func isPlain(_ text: String) -> Bool {
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

/// Why something is no manifest of an application, or cannot be registered, as a sentence about it that begins with a
/// small letter.
package struct ApplicationManifestError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The problem and, if it is not plain, the next step. It may quote the file: escape it before a terminal shows it.
    package let description: String

    package init(_ description: String) {
        self.description = description
    }

    /// The file could not be opened or read.
    static func unreadable(_ error: Errno, _ subject: String = "it") -> Self {
        switch error {
        case .fileTooLarge: Self("\(subject) has over \(ManifestBounds.fileSize >> 10) KiB")
        case .invalidArgument: Self("\(subject) is no file")
        case .noSuchFileOrDirectory: Self("\(subject) does not exist")
        case _: Self("\(subject) cannot be read (\(error))")
        }
    }
}
