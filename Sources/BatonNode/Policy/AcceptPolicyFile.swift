// SPDX-License-Identifier: Apache-2.0

package import BatonTransport
package import SystemPackage

/// The file that the user writes the policy into: `accept-policy` in the configuration folder.
package enum AcceptPolicyFile {
    /// The consequence of a mistake in the file, for people.
    package static let meaningOfMistake = "until it is fixed, its rules accept nothing and only refuse"

    /// The file in a home.
    package static func path(in home: Home) -> FilePath {
        FilePath(home.configurationFolder).appending("accept-policy")
    }

    /// Reads the file. Blocks.
    ///
    /// - Parameter userHome: the folder that `~/` stands for.
    /// - Returns: nil if there is no file.
    /// - Throws: what is wrong with it. It must belong to this user (or root), and nobody else may write to it.
    package static func read(_ path: FilePath, userHome: FilePath?) throws(ConfigurationError) -> AcceptPolicy? {
        guard let content = try ConfigurationFile.contents(of: path) else { return nil }
        return try AcceptPolicy(parsing: content, home: userHome)
    }
}
