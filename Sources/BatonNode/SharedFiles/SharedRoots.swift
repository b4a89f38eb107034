// SPDX-License-Identifier: Apache-2.0

import BatonApplications

package import struct SystemPackage.FilePath

/// A folder that other devices of the account have as well, under the same name: what is in it needs no transfer.
package struct SharedRoot: Sendable, Hashable {
    /// The name that devices use among themselves.
    package let name: String
    /// Where this device has it, absolute.
    package let folder: FilePath
    /// Where it stands in the file, from 1.
    package let line: Int
}

/// The folders that this device shares with others, as the user wrote them down: a line `NAME=FOLDER` each.
///
/// How they come to hold the same files (a network file system, a program that synchronises) is not Baton's business.
package struct SharedRoots: Sendable, Hashable {
    /// Roots at the most: 64. For each file URL of an activity all of them are compared.
    package static let bound = 64
    /// Bytes of a name at the most: 64.
    package static let nameBound = 64

    /// In the order of the file.
    package private(set) var roots: [SharedRoot]

    /// None.
    package init() { roots = [] }

    /// The root of this name.
    package subscript(name: String) -> SharedRoot? { roots.first { $0.name == name } }

    /// Reads the file's content: a root a line, with `#` before what is meant for people. All behind `=` is the folder,
    /// spaces as well.
    package init(parsing text: [UInt8]) throws(ConfigurationError) {
        var roots: [SharedRoot] = []
        let mistake = ConfigurationFile.mistake(in: text) { (line, text) throws(ConfigurationError) in
            guard let equals = text.utf8.firstIndex(of: UInt8(ascii: "=")) else {
                throw ConfigurationError("NAME=FOLDER was expected")
            }
            let (name, folder) = (String(text[..<equals]), String(text[text.utf8.index(after: equals)...]))
            guard Self.isName(name) else {
                throw ConfigurationError(
                    "\"\(name)\" is no name: use up to \(Self.nameBound) letters, digits, dots, hyphens and underscores"
                )
            }
            guard !folder.isEmpty else { throw ConfigurationError("\(name) has no folder") }
            let root = SharedRoot(name: name, folder: try FilePath(configured: folder), line: line)
            if let other = roots.first(where: { $0.name == name }) {
                throw ConfigurationError("\(name) is there already, in line \(other.line)")
            }
            guard roots.count < Self.bound else { throw ConfigurationError("there are over \(Self.bound) folders") }
            roots.append(root)
        }
        if let mistake { throw mistake }
        self.roots = roots
    }

    /// Whether a name can be one of a root: 1 to 64 letters, digits, dots, hyphens and underscores, without a dot in
    /// front.
    package static func isName(_ name: String) -> Bool {
        (1...nameBound).contains(name.utf8.count) && !name.hasPrefix(".") && DottedName.isPlain(name)
    }
}
