import BatonAccount
import BatonNode
import BatonTransport
import FoundationEssentials
import Glibc
import SystemPackage

/// Where this user's Baton is, as the environment says.
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
    static func absolute(_ path: String) -> FilePath { absolute(FilePath(path)) }

    /// The same of a path that need not be a text.
    static func absolute(_ path: FilePath) -> FilePath {
        guard path.isRelative else { return path.lexicallyNormalized() }
        return currentFolder.pushing(path).lexicallyNormalized()
    }

    /// The current folder; Foundation would repair a name that is not UTF-8.
    private static var currentFolder: FilePath {
        guard let path = getcwd(nil, 0) else { return FilePath(FileManager.default.currentDirectoryPath) }
        defer { free(path) }
        return FilePath(platformString: path)
    }
}
