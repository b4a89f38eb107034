// SPDX-License-Identifier: Apache-2.0

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

    /// A target that was checked before it was kept.
    init(known bytes: ArraySlice<UInt8>) {
        self.bytes = Array(bytes)
    }
}

extension DocumentTree {
    /// Makes sure that no link leads out from where it stands: a target was checked for one path and could be given to
    /// another entry.
    func requireLinksInside() throws(DocumentError) {
        for index in 0..<entryCount {
            let entry = self[index]
            guard case .link(let target) = entry.kind else { continue }
            guard LinkTarget(target.bytes, at: entry.path) == target else {
                throw DocumentError(.badName, displayed(entry.path))
            }
        }
    }
}
