// SPDX-License-Identifier: Apache-2.0

package import BatonTransport
package import SystemPackage

/// The file that the user, or `baton roots`, writes the shared folders into: `shared-roots` in the configuration
/// folder.
package enum SharedRootsFile {
    /// Where a home has it.
    package static func path(in home: Home) -> FilePath {
        FilePath(home.configurationFolder).appending("shared-roots")
    }

    /// Reads the file; blocks.
    ///
    /// - Parameter userHome: what `~/` stands for.
    /// - Returns: none where there is no file.
    /// - Throws: what is wrong with it. It has to be a file of this user (or root) that nobody else can write to.
    package static func read(_ path: FilePath, userHome: FilePath?) throws(ConfigurationError) -> SharedRoots {
        guard let content = try ConfigurationFile.contents(of: path) else { return SharedRoots() }
        return try SharedRoots(parsing: content, home: userHome)
    }

    /// Adds a root at the end; what the user wrote stays as it is.
    ///
    /// - Parameter folder: absolute.
    /// - Throws: what is wrong with the file, with the name or the folder, or what kept it from being written.
    package static func add(
        _ name: String, _ folder: FilePath, to path: FilePath, userHome: FilePath?
    ) throws(ConfigurationError) {
        // What is wrong with the file is said before a folder is made for it.
        _ = try ConfigurationFile.contents(of: path)
        let lock = try ConfigurationFile.lock(path)
        defer { withExtendedLifetime(lock) {} }
        var content = try ConfigurationFile.contents(of: path) ?? []
        if let last = content.last, last != 0x0A { content.append(0x0A) }
        content += Array("\(name)=\(folder.string)\n".utf8)
        // What a name or a folder may not have, the file may not have either: a line break makes a second root.
        let roots = try SharedRoots(parsing: content, home: userHome)
        guard roots[name]?.folder == folder.tidied, !name.contains("\n"), !folder.string.contains("\n")
        else {
            throw ConfigurationError("the folder \"\(folder)\" cannot be written down: its name has odd characters")
        }
        try ConfigurationFile.write(content, to: path)
    }

    /// Removes a root; everything else stays as it is.
    ///
    /// - Returns: whether there was one of this name.
    package static func remove(
        _ name: String, from path: FilePath, userHome: FilePath?
    ) throws(ConfigurationError) -> Bool {
        // No folder is made to remove nothing from.
        guard try ConfigurationFile.contents(of: path) != nil else { return false }
        let lock = try ConfigurationFile.lock(path)
        defer { withExtendedLifetime(lock) {} }
        guard let content = try ConfigurationFile.contents(of: path) else { return false }
        guard let root = try SharedRoots(parsing: content, home: userHome)[name] else { return false }
        var lines = content.split(separator: 0x0A, omittingEmptySubsequences: false)
        lines.remove(at: root.line - 1)
        try ConfigurationFile.write(Array(lines.joined(separator: [0x0A])), to: path)
        return true
    }
}
