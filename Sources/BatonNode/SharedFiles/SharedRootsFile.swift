// SPDX-License-Identifier: Apache-2.0

package import BatonTransport
package import SystemPackage

/// The file that the user, or `baton roots`, writes the shared folders into: `shared-roots` in the configuration
/// folder.
package enum SharedRootsFile {
    /// The file in a home.
    package static func path(in home: Home) -> FilePath {
        FilePath(home.configurationFolder).appending("shared-roots")
    }

    /// Reads the file. Blocks.
    ///
    /// - Returns: no roots if there is no file.
    /// - Throws: what is wrong with it. It must belong to this user (or root), and nobody else may write to it.
    package static func read(_ path: FilePath) throws(ConfigurationError) -> SharedRoots {
        guard let content = try ConfigurationFile.contents(of: path) else { return SharedRoots() }
        return try SharedRoots(parsing: content)
    }

    /// Adds a root at the end. The rest of the file stays as it is.
    ///
    /// - Parameter folder: absolute.
    /// - Throws: what is wrong with the file, the name or the folder, or why the file cannot be written.
    package static func add(_ name: String, _ folder: FilePath, to path: FilePath) throws(ConfigurationError) {
        try ConfigurationFile.edit(path) { (content) throws(ConfigurationError) in
            var content = content
            if let last = content.last, last != 0x0A { content.append(0x0A) }
            content += Array("\(name)=\(folder.string)\n".utf8)
            // The file may have no other characters than a name or a folder: a line break would make a second root.
            let roots = try SharedRoots(parsing: content)
            guard roots[name]?.folder == folder.tidied, !name.contains("\n"), !folder.string.contains("\n")
            else {
                throw ConfigurationError("the folder \"\(folder)\" cannot be written down: its name has odd characters")
            }
            return content
        }
    }

    /// Removes a root. The rest of the file stays as it is.
    ///
    /// - Returns: whether there was one of this name.
    package static func remove(_ name: String, from path: FilePath) throws(ConfigurationError) -> Bool {
        // No folder is made to remove nothing from.
        guard try ConfigurationFile.contents(of: path) != nil else { return false }
        var isRemoved = false
        try ConfigurationFile.edit(path) { (content) throws(ConfigurationError) in
            guard let root = try SharedRoots(parsing: content)[name] else { return nil }
            isRemoved = true
            var lines = content.split(separator: 0x0A, omittingEmptySubsequences: false)
            lines.remove(at: root.line - 1)
            return Array(lines.joined(separator: [0x0A]))
        }
        return isRemoved
    }
}
