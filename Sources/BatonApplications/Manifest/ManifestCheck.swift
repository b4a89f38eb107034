// SPDX-License-Identifier: Apache-2.0

/// The requirements on every manifest, from any kind of file.
enum ManifestCheck {
    static func identifier(_ text: String) throws(ApplicationManifestError) {
        guard !text.isEmpty else { throw .missing("it has no identifier") }
        guard DottedName.isIdentifier(text) else {
            throw .malformed(
                "\"\(text)\" is no identifier: one has up to \(ManifestBounds.identifier) letters, digits, dots, "
                    + "hyphens and underscores, such as org.example.editor")
        }
    }

    static func name(_ text: String) throws(ApplicationManifestError) {
        guard !text.isEmpty else { throw .missing("it has no name") }
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
            throw .malformed(
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
                    guard !kind.isEmpty else { throw .malformed("a \(noun) is empty") }
                    try length(kind, atMost: ManifestBounds.documentKind, noun)
                    try line(kind, noun)
                }
            }
        }
    }

    static func command(_ words: [String]) throws(ApplicationManifestError) {
        guard let program = words.first else { return }
        guard !program.isEmpty else { throw .malformed("the program of its command is empty") }
        try count(words.count, atMost: ManifestBounds.words, "words of its command")
        let bytes = words.reduce(0) { $0 + $1.utf8.count + 1 }
        guard bytes <= ManifestBounds.command else {
            throw .tooLarge("its command has \(bytes) bytes; \(ManifestBounds.command) is the most")
        }
        // The system ends an argument there.
        guard words.allSatisfy({ !$0.utf8.contains(0) }) else {
            throw .malformed("its command holds a character of code 0")
        }
    }

    static func desktopEntry(_ id: String) throws(ApplicationManifestError) {
        guard !id.isEmpty else { throw .malformed("the id of its desktop entry is empty") }
        try length(id, atMost: ManifestBounds.desktopEntry, "desktop entry's id")
        try line(id, "desktop entry's id")
    }

    static func count(_ count: Int, atMost bound: Int, _ nouns: String) throws(ApplicationManifestError) {
        guard count <= bound else { throw .tooLarge("it has \(count) \(nouns); \(bound) is the most") }
    }

    private static func length(_ text: String, atMost bound: Int, _ noun: String) throws(ApplicationManifestError) {
        guard text.utf8.count <= bound else {
            throw .tooLarge("its \(noun) has \(text.utf8.count) bytes; \(bound) is the most")
        }
    }

    /// Names are printed and kept in files of lines.
    private static func line(_ text: String, _ noun: String) throws(ApplicationManifestError) {
        guard text.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }) else {
            throw .malformed("its \(noun) holds a control character")
        }
    }
}
