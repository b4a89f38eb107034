// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
package import SystemPackage

/// The folders in which desktop entries live, the user's own first.
///
/// Source: XDG Base Directory Specification 0.8; Desktop Entry Specification 1.5, "Desktop File ID".
package struct DesktopEntryFolders: Sendable, Hashable {
    /// The most desktop entries that are looked at; a large desktop has some 500.
    package static let fileBound = 4096
    /// How deep folders are searched.
    static let depthBound = 8

    static let suffix = ".desktop"

    /// Folders named `applications`.
    package let folders: [FilePath]
    let search: ExecutableSearch

    /// - Parameter environment: `XDG_DATA_HOME` (else `~/.local/share`) and `XDG_DATA_DIRS` (else
    ///   `/usr/local/share:/usr/share`); relative paths in them are passed over, as the specification wants it.
    ///   `PATH` likewise counts.
    package init(environment: [String: String]) {
        var bases: [String] = []
        if let home = environment["XDG_DATA_HOME"], home.hasPrefix("/") {
            bases.append(home)
        } else if let home = environment["HOME"], home.hasPrefix("/") {
            bases.append(home + "/.local/share")
        }
        let shared = environment["XDG_DATA_DIRS"].flatMap { $0.isEmpty ? nil : $0 } ?? "/usr/local/share:/usr/share"
        bases += shared.split(separator: ":").map(String.init).filter { $0.hasPrefix("/") }
        var seen: Set<FilePath> = []
        folders = bases.map { FilePath($0).appending("applications") }.filter { seen.insert($0).inserted }
        search = ExecutableSearch(environment: environment)
    }

    /// Each desktop entry by its id, such as `org-editor.desktop` for `org/editor.desktop`. Of several entries with one
    /// id the first counts, so that an entry of the user's replaces or hides the system's.
    func files() -> [(id: String, path: FilePath)] {
        var files: [(id: String, path: FilePath)] = []
        var seen: Set<String> = []
        var left = Self.fileBound
        for folder in folders {
            walk(folder, prefix: "", depth: 0, left: &left) { id, path in
                if seen.insert(id).inserted { files.append((id, path)) }
            }
        }
        return files
    }

    /// The name of a desktop entry's application.
    ///
    /// - Parameter id: such as `firefox.desktop`.
    package func applicationName(ofEntry id: String) -> String? {
        guard let path = files().first(where: { $0.id == id })?.path,
            let bytes = try? DurableFile.read(path, limit: ManifestBounds.fileSize),
            let entry = try? DesktopEntry(bytes)
        else { return nil }
        return entry.string("Name")
    }

    private func walk(
        _ folder: FilePath, prefix: String, depth: Int, left: inout Int, _ found: (String, FilePath) -> Void
    ) {
        guard depth < Self.depthBound, left > 0, let names = try? DurableFile.names(in: folder, limit: left) else {
            return
        }
        left -= names.count
        for name in names.sorted() where !name.hasPrefix(".") {
            let path = folder.appending(name)
            if name.hasSuffix(Self.suffix) {
                found(prefix + name, path)
            } else if (try? path.stat().type) == .directory {
                walk(path, prefix: prefix + name + "-", depth: depth + 1, left: &left, found)
            }
        }
    }
}
