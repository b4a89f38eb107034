public import BatonTransport
public import SystemPackage

/// The file that the user writes the policy into: `accept-policy` in the configuration folder.
public enum AcceptPolicyFile {
    /// Where a home has it.
    public static func path(in home: Home) -> FilePath {
        FilePath(home.configurationFolder).appending("accept-policy")
    }

    /// Reads the file; blocks.
    ///
    /// - Parameter userHome: what `~/` stands for.
    /// - Returns: `nil` where there is no file.
    /// - Throws: what is wrong with it. It has to be a file of this user (or root) that nobody else can write to.
    public static func read(_ path: FilePath, userHome: FilePath?) throws(ConfigurationError) -> AcceptPolicy? {
        guard let content = try ConfigurationFile.contents(of: path) else { return nil }
        return try AcceptPolicy(parsing: content, home: userHome)
    }
}
