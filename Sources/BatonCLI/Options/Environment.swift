// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonDocuments
import BatonNode
import BatonTransport
import FoundationEssentials
import Glibc
import SystemPackage

/// The folders and files of this user's Baton, as the environment sets them.
enum CommandEnvironment {
    static func home() throws(CommandError) -> Home {
        do {
            return try Home(environment: ProcessInfo.processInfo.environment)
        } catch {
            throw .usage("\(error)")
        }
    }

    /// The account of this device.
    static func accountStore(_ home: Home) -> AccountStore {
        AccountStore(folder: AccountStore.folder(in: home))
    }

    /// A path as the user wrote it, made absolute.
    ///
    /// Only the system knows where a `..` after a symbolic link leads. The path is therefore resolved up to its last
    /// `..`, and the rest keeps its names, links included. If that folder does not exist, the path stays as written.
    static func absolute(_ path: FilePath) -> FilePath {
        let whole = path.isRelative ? currentFolder.pushing(path) : path
        guard let last = whole.components.lastIndex(where: { $0.kind == .parentDirectory }) else {
            return whole.lexicallyNormalized()
        }
        let rest = whole.components.index(after: last)
        let folder = FilePath(root: whole.root, whole.components[..<rest])
        guard let resolved = try? FileLookup.resolved(folder) else { return whole }
        return resolved.appending(whole.components[rest...]).lexicallyNormalized()
    }

    /// The current folder. Foundation would change a name that is not UTF-8.
    private static var currentFolder: FilePath {
        guard let path = getcwd(nil, 0) else { return FilePath(FileManager.default.currentDirectoryPath) }
        defer { free(path) }
        return FilePath(platformString: path)
    }
}
