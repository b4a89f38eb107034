// SPDX-License-Identifier: Apache-2.0

package import SystemPackage

/// A file or folder of this machine that is fit to be offered, with all that is in it.
package struct ScannedDocument: Sendable {
    /// Where it is. A relative path means the process's current folder: callers that offer it for later make it
    /// absolute.
    package let path: FilePath
    /// The entries of the folder that belong to it.
    package let selection: DocumentSelection
    package let tree: DocumentTree
    /// Entries of the folder that will not be sent.
    package let leftOut: LeftOut
    /// Which document it is, whatever is in it.
    package internal(set) var identity = DocumentIdentity.unknown

    init(path: FilePath, selection: DocumentSelection = .all, tree: DocumentTree, leftOut: LeftOut) {
        self.path = path
        self.selection = selection
        self.tree = tree
        self.leftOut = leftOut
    }

    /// Entries of a folder that no document can have: links to what is not sent, sockets, pipes and devices.
    package struct LeftOut: Sendable, Hashable {
        /// How many of them are named at most: 3.
        package static let exampleLimit = 3

        /// How many entries there are.
        package private(set) var count = 0
        /// The first of them.
        package private(set) var examples: [EntryPath] = []

        mutating func add(_ path: EntryPath) {
            count += 1
            if examples.count < Self.exampleLimit { examples.append(path) }
        }

        /// A sentence for the user; nil if nothing was left out.
        package var message: String? {
            guard count > 0 else { return nil }
            let names = examples.map { "'\($0)'" }.joined(separator: ", ")
            let more = count > examples.count ? " and \(count - examples.count) more" : ""
            return
                "Not sent: \(names)\(more). Links to what is not sent, sockets, pipes and devices are left out."
        }
    }
}

extension FileVersion {
    /// The version of a file in this state: XXH3-128 of its size and both times, each as 8 bytes, big endian.
    ///
    /// It tells states of one path apart. It is neither a secret nor a checksum of the content. The numbers of device
    /// and file are left out, because disks that are plugged in again and file systems without inodes change them.
    init(of identity: FileIdentity) {
        let numbers = [
            identity.size, UInt64(bitPattern: identity.modified.seconds),
            UInt64(bitPattern: identity.modified.nanoseconds), UInt64(bitPattern: identity.changed.seconds),
            UInt64(bitPattern: identity.changed.nanoseconds),
        ].map(\.bigEndian)
        let checksum = numbers.withUnsafeBytes { ChunkChecksum(of: $0) }
        self.init(high: checksum.high, low: checksum.low)
    }
}

/// The part of a folder that is offered: all of it, or some of the entries directly in it.
package struct DocumentSelection: Sendable, Hashable {
    /// The most names: 1,000. It bounds what a node keeps for one offer.
    package static let nameLimit = 1000
    /// The most bytes of all names: 32 KiB, half of what a message holds.
    package static let byteLimit = 32 << 10
    /// All of the folder; the only selection of a file.
    package static let all = DocumentSelection(sorted: [])

    /// The names of the entries in the order of a manifest, each once; empty: all of the folder.
    package let names: [[UInt8]]

    package var isAll: Bool { names.isEmpty }

    private init(sorted names: [[UInt8]]) {
        self.names = names
    }

    /// A selection of entries; all of the folder for no names.
    ///
    /// - Returns: nil for more than ``nameLimit`` names or ``byteLimit`` bytes.
    package init?(_ names: [DocumentLabel]) {
        let names = Set(names.map(\.bytes))
        guard names.count <= Self.nameLimit, names.reduce(0, { $0 + $1.count }) <= Self.byteLimit else { return nil }
        self.init(sorted: names.sorted { $0.lexicographicallyPrecedes($1) })
    }
}
