// SPDX-License-Identifier: Apache-2.0

package import SystemPackage

/// A file or folder of this machine that is fit to be offered, with all that is in it.
package struct ScannedDocument: Sendable {
    /// Where it is. A relative path means the process's current folder: callers that offer it for later make it
    /// absolute.
    package let path: FilePath
    /// The entries of the folder that belong to it.
    package let selection: DocumentSelection
    /// Its entries.
    package let tree: DocumentTree
    /// Entries of the folder that will not be sent.
    package let leftOut: LeftOut
    /// Which document it is, whatever is in it.
    package internal(set) var identity = DocumentIdentity.unknown

    /// A file that was inspected.
    ///
    /// - Throws: `tooLarge`.
    package init(_ source: DocumentSource) throws(DocumentError) {
        path = source.path
        selection = .all
        tree = try DocumentTree(
            file: .init(
                size: source.size, isExecutable: source.permissions & 0o100 != 0,
                version: FileVersion(of: source.identity)), called: source.label, modified: source.identity.modified,
            permissions: source.permissions)
        leftOut = LeftOut()
    }

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
    /// The version of a file in this state: XXH3-128 of inode, size and both times.
    ///
    /// The device's number is not in it: it changes with the order in which disks are found. If the file system does
    /// not keep inodes, 0 takes the place of the inode, so nobody notices if two files that are equal in all else
    /// exchange their names. Everything is kept as 8 bytes, big endian. It tells states of one path apart and is no
    /// secret; it is no checksum of the content.
    init(of identity: FileIdentity) {
        let numbers = [
            identity.inode, identity.size, UInt64(bitPattern: identity.modified.seconds),
            UInt64(bitPattern: identity.modified.nanoseconds), UInt64(bitPattern: identity.changed.seconds),
            UInt64(bitPattern: identity.changed.nanoseconds),
        ].map(\.bigEndian)
        let checksum = numbers.withUnsafeBytes { ChunkChecksum(of: $0) }
        self.init(high: checksum.high, low: checksum.low)
    }
}
