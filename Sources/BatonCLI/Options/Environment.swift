import BatonAccount
import BatonNode
import BatonTransport
import FoundationEssentials
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
    static func absolute(_ path: String) -> FilePath {
        let given = FilePath(path)
        guard given.isRelative else { return given.lexicallyNormalized() }
        return FilePath(FileManager.default.currentDirectoryPath).pushing(given).lexicallyNormalized()
    }
}
