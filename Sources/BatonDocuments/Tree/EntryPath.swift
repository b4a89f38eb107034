// SPDX-License-Identifier: Apache-2.0

/// Where an entry of a folder is in it: bytes with `/` between names, never absolute and never upwards.
package struct EntryPath: Sendable, Hashable, CustomStringConvertible {
    /// The most bytes of a path: Linux's PATH_MAX, less its NUL.
    package static let maximumLength = 4095
    /// The most names in a path. It bounds how deep a folder can be, with the stacks that walk it.
    package static let maximumDepth = 64

    private static let slash = UInt8(ascii: "/")

    /// The names with `/` between them; empty for the document itself.
    package let bytes: [UInt8]

    /// The document itself.
    package static let root = EntryPath(unchecked: [])

    /// A path of bytes of which the caller knows that they are one.
    init(unchecked bytes: some Collection<UInt8>) {
        self.bytes = Array(bytes)
    }

    /// A path that somebody else chose.
    ///
    /// - Throws: `badName` for more than ``maximumLength`` bytes or ``maximumDepth`` names, and for any name that no
    ///   label can be (``DocumentLabel``).
    package init(_ bytes: some Collection<UInt8>) throws(DocumentError) {
        let bytes = Array(bytes.prefix(Self.maximumLength + 1))
        guard !bytes.isEmpty, bytes.count <= Self.maximumLength else {
            throw DocumentError(.badName, NameDisplay.escaped(bytes))
        }
        var depth = 0
        for name in bytes.split(separator: Self.slash, omittingEmptySubsequences: false) {
            _ = try DocumentLabel(name)
            depth += 1
        }
        guard depth <= Self.maximumDepth else { throw DocumentError(.badName, NameDisplay.escaped(bytes)) }
        self.bytes = bytes
    }

    /// The entry of a folder that has this path.
    ///
    /// - Throws: `badName` where it would be too long or too deep.
    package func appending(_ name: DocumentLabel) throws(DocumentError) -> EntryPath {
        if isRoot { return EntryPath(unchecked: name.bytes) }
        guard bytes.count + 1 + name.bytes.count <= Self.maximumLength, depth < Self.maximumDepth else {
            throw DocumentError(.badName, NameDisplay.escaped(bytes + [Self.slash] + name.bytes))
        }
        return EntryPath(unchecked: bytes + [Self.slash] + name.bytes)
    }

    package var isRoot: Bool { bytes.isEmpty }

    /// How many names it has: 0 for the document itself.
    package var depth: Int { isRoot ? 0 : bytes.count(where: { $0 == Self.slash }) + 1 }

    /// The folder that it is in; the root's is the root.
    package var parent: EntryPath {
        guard let slash = bytes.lastIndex(of: Self.slash) else { return .root }
        return EntryPath(unchecked: bytes[..<slash])
    }

    package var names: [ArraySlice<UInt8>] { bytes.split(separator: Self.slash) }

    /// The path for people, escaped.
    package var description: String { NameDisplay.escaped(bytes) }

    /// Whether it comes after another in a manifest: each folder before what is in it, and names rising bytewise. So a
    /// path that comes after another is never the same, and all that is in a folder stands together.
    func follows(_ other: EntryPath) -> Bool {
        // A slash counts as the lowest of all bytes: `a/b` comes before `a.b`.
        for (mine, theirs) in zip(bytes, other.bytes) where mine != theirs {
            if mine == Self.slash { return false }
            if theirs == Self.slash { return true }
            return mine > theirs
        }
        return bytes.count > other.bytes.count
    }
}

/// Where a symbolic link of a folder leads: bytes, kept as they are, and only when the way stays inside of the folder.
package struct LinkTarget: Sendable, Hashable {
    /// The most bytes of a target: Linux's PATH_MAX, less its NUL.
    package static let maximumLength = 4095

    /// The target, as the link says it.
    package let bytes: [UInt8]

    /// The target of the link at `path`; nil where it is absolute or could lead outside.
    ///
    /// `..` is taken at the beginning alone, and not more often than the link is deep. After a name it could go up from
    /// wherever another link has led, which nobody can tell from the names: such a link is left out as well.
    package init?(_ bytes: some Collection<UInt8>, at path: EntryPath) {
        let bytes = Array(bytes.prefix(Self.maximumLength + 1))
        guard !bytes.isEmpty, bytes.count <= Self.maximumLength, !bytes.contains(0), bytes.first != UInt8(ascii: "/")
        else { return nil }
        let dot = UInt8(ascii: ".")
        var room = path.depth - 1
        var isDown = false
        for name in bytes.split(separator: UInt8(ascii: "/")) where name.elementsEqual([dot]) == false {
            if name.elementsEqual([dot, dot]) {
                guard !isDown, room > 0 else { return nil }
                room -= 1
            } else {
                isDown = true
            }
        }
        self.bytes = bytes
    }

    /// The name of the entry in the root that the link at `path` leads to or through; nil if it leads to the root.
    package func top(from path: EntryPath) -> [UInt8]? {
        var names = path.bytes.split(separator: UInt8(ascii: "/")).dropLast()
        for name in bytes.split(separator: UInt8(ascii: "/")) where !name.elementsEqual(".".utf8) {
            if name.elementsEqual("..".utf8) { names = names.dropLast() } else { names.append(name) }
        }
        return names.first.map(Array.init)
    }
}
