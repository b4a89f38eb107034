// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
package import SystemPackage

/// The applications that were used last, by continuing an activity or by being in front, the latest first.
///
/// They are kept in the file `applications-used` of the state folder, one identifier a line. A missing or damaged file
/// is an empty list.
package struct RecentApplications: Sendable, Hashable {
    /// The most that are remembered; the oldest are forgotten. 13 KiB on disk at most.
    package static let bound = 64

    /// The latest first.
    package private(set) var identifiers: [String]

    /// The file in a state folder.
    package static func path(in stateFolder: FilePath) -> FilePath { stateFolder.appending("applications-used") }

    package init(_ identifiers: [String] = []) {
        self.identifiers = Array(identifiers.prefix(Self.bound))
    }

    /// Reads the file; blocks. Lines that are no identifier are skipped.
    package init(reading path: FilePath) {
        let bytes = (try? DurableFile.read(path, limit: (ManifestBounds.identifier + 1) * Self.bound)) ?? []
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
        self.init(lines.filter(DottedName.isIdentifier))
    }

    /// Notes that an application is used now.
    package mutating func note(_ identifier: String) {
        identifiers.removeAll { $0 == identifier }
        identifiers.insert(identifier, at: 0)
        identifiers.removeLast(max(0, identifiers.count - Self.bound))
    }

    /// Writes the file, whole or not at all; blocks. Its folder has to be there.
    package func write(to path: FilePath) throws(Errno) {
        try DurableFile.replace(path, with: identifiers.flatMap { Array($0.utf8) + [UInt8(ascii: "\n")] })
    }
}
