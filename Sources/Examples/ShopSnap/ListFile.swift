// SPDX-License-Identifier: Apache-2.0

import Baton
import FoundationEssentials
import Glibc

/// The file of the list. It holds one whole list at any time, even after a power failure.
///
/// Several ShopSnaps of one user share it: each merges its list into the file.
struct ListFile: Sendable {
    struct Failure: Error, CustomStringConvertible {
        let description: String

        init(_ what: String, _ path: String) {
            description = "\(path) \(what) (\(String(cString: strerror(errno))))"
        }
    }

    let folder: String
    var path: String { folder + "/list.json" }

    /// The file in `$BATON_HOME/state/shopsnap`, else in `$XDG_STATE_HOME/shopsnap`, else in the same of the home
    /// folder.
    init(environment: [String: String]) {
        let state =
            if let home = environment["BATON_HOME"], !home.isEmpty {
                home + "/state"
            } else if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") {
                state
            } else {
                (environment["HOME"] ?? "") + "/.local/state"
            }
        folder = state + "/shopsnap"
    }

    /// Merges a list with the file's, and writes the result. It is on the disk when this returns.
    func keep(_ list: inout ShoppingList) throws(Failure) {
        do {
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw Failure("cannot be made", folder)
        }
        let directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw Failure("cannot be opened", folder) }
        // Closing it unlocks it.
        defer { close(directory) }
        guard flock(directory, LOCK_EX) == 0 else { throw Failure("cannot be locked", folder) }
        let kept = try read()
        if let kept { list.merge(kept) }
        if list != kept { try write(list, in: directory) }
    }

    /// The list in the file, or `nil` without a file. An unreadable file is renamed, not overwritten.
    private func read() throws(Failure) -> ShoppingList? {
        guard access(path, F_OK) == 0 else { return nil }
        guard let bytes = try? Data(contentsOf: URL(filePath: path)) else { throw Failure("cannot be read", path) }
        if let file = try? UserInfo(json: bytes), case .integer(let version) = file["version"],
            let version = UInt32(exactly: version), let list = try? ShoppingList(file, version: version)
        {
            return list
        }
        guard rename(path, path + ".unreadable") == 0 else { throw Failure("cannot be set aside", path) }
        return nil
    }

    private func write(_ list: ShoppingList, in directory: Int32) throws(Failure) {
        var contents = list.userInfo
        contents["version"] = .integer(Int64(ShoppingList.version))
        let new = path + ".new"
        let file = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Failure("cannot be written", new) }
        defer { close(file) }
        var rest = Array((contents.jsonText + "\n").utf8)[...]
        // A nearly full disk may accept a part. The next attempt then fails with the reason.
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            guard count > 0 else { throw Failure("cannot be written", new) }
            rest = rest.dropFirst(count)
        }
        guard fsync(file) == 0, rename(new, path) == 0, fsync(directory) == 0 else {
            throw Failure("cannot be written", new)
        }
    }
}
