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
    ///
    /// - Parameter home: what `~/` stands for; `nil` where nobody knows.
    package init(parsing text: some Collection<UInt8>, home: FilePath?) throws(ConfigurationError) {
        guard String(validating: text, as: UTF8.self) != nil else { throw ConfigurationError("it is not UTF-8") }
        roots = []
        for (index, bytes) in text.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            guard let root = try Self.root(Array(bytes), line: index + 1, home: home) else { continue }
            if let other = self[root.name] {
                throw ConfigurationError(
                    line: root.line, column: 1, problem: "\(root.name) is there already, in line \(other.line)")
            }
            guard roots.count < Self.bound else {
                throw ConfigurationError(line: root.line, column: 1, problem: "there are over \(Self.bound) folders")
            }
            roots.append(root)
        }
    }

    /// Whether a name can be one of a root: 1 to 64 letters, digits, dots, hyphens and underscores, without a dot in
    /// front.
    package static func isName(_ name: String) -> Bool {
        (1...nameBound).contains(name.utf8.count) && !name.hasPrefix(".") && DottedName.isPlain(name)
    }

    /// - Returns: `nil` for an empty line or a comment.
    private static func root(
        _ bytes: [UInt8], line: Int, home: FilePath?
    ) throws(ConfigurationError) -> SharedRoot? {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D }
        guard let start = bytes.firstIndex(where: { !isSpace($0) }), bytes[start] != UInt8(ascii: "#") else {
            return nil
        }
        let end = bytes.lastIndex { !isSpace($0) }.map { $0 + 1 } ?? start
        if let control = bytes[..<end].firstIndex(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) {
            throw ConfigurationError(line: line, column: control + 1, problem: "there is a control character")
        }
        guard let equals = bytes[start..<end].firstIndex(of: UInt8(ascii: "=")) else {
            throw ConfigurationError(line: line, column: start + 1, problem: "NAME=FOLDER was expected")
        }
        let name = String(decoding: bytes[start..<equals], as: UTF8.self)
        guard isName(name) else {
            throw ConfigurationError(
                line: line, column: start + 1,
                problem: "\"\(name)\" is no name: use up to \(nameBound) letters, digits, dots, hyphens and underscores"
            )
        }
        guard equals + 1 < end else {
            throw ConfigurationError(line: line, column: equals + 2, problem: "\(name) has no folder")
        }
        let folder = try FilePath(
            configured: String(decoding: bytes[(equals + 1)..<end], as: UTF8.self), home: home, line: line,
            column: equals + 2)
        return SharedRoot(name: name, folder: folder, line: line)
    }
}
