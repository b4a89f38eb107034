// SPDX-License-Identifier: Apache-2.0

package import BatonTransport
package import SystemPackage

/// The file that the user writes the policy into: `accept-policy` in the configuration folder.
package enum AcceptPolicyFile {
    /// The consequence of a mistake in the file, for people.
    package static let meaningOfMistake = "until it is fixed, its rules accept nothing and only refuse"

    /// Where a home has it.
    package static func path(in home: Home) -> FilePath {
        FilePath(home.configurationFolder).appending("accept-policy")
    }

    /// Reads the file; blocks.
    ///
    /// - Parameter userHome: what `~/` stands for.
    /// - Returns: `nil` where there is no file.
    /// - Throws: what is wrong with it. It has to be a file of this user (or root) that nobody else can write to.
    package static func read(_ path: FilePath, userHome: FilePath?) throws(ConfigurationError) -> AcceptPolicy? {
        guard let content = try ConfigurationFile.contents(of: path) else { return nil }
        return try AcceptPolicy(parsing: content, home: userHome)
    }

    /// What holds of the file as it is; blocks.
    ///
    /// - Parameter before: what held when the file could last be read.
    /// - Returns: the policy, and what is wrong with the file. With a mistake in it the file accepts nothing any more,
    ///   and still refuses what it says that it refuses. Of one that cannot be read, or that others could have written,
    ///   what it says counts for nothing, and what held before goes on refusing what it refused and accepts nothing.
    static func inForce(
        _ path: FilePath, userHome: FilePath?, after before: AcceptPolicy
    ) -> (policy: AcceptPolicy, problem: ConfigurationError?) {
        let content: [UInt8]
        do throws(ConfigurationError) {
            content = try ConfigurationFile.contents(of: path) ?? []
        } catch {
            return (before.asking, error)
        }
        do throws(ConfigurationError) {
            return (try AcceptPolicy(parsing: content, home: userHome), nil)
        } catch {
            return (AcceptPolicy(refusalsOf: content, home: userHome), error)
        }
    }
}
