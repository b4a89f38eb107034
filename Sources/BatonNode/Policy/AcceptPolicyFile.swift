// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonProtocol
package import BatonTransport
import Logging
package import SystemPackage

/// The file that the user writes the policy into: `accept-policy` in the configuration folder.
package enum AcceptPolicyFile {
    /// The consequence of a mistake in the file, for people.
    package static let meaningOfMistake = "until it is fixed, its rules accept nothing and only refuse"

    package static func path(in home: Home) -> FilePath {
        FilePath(home.configurationFolder).appending("accept-policy")
    }

    /// Reads the file. Blocks.
    ///
    /// - Returns: nil if there is no file.
    /// - Throws: what is wrong with it. It must belong to this user (or root), and nobody else may write to it.
    package static func read(_ path: FilePath) throws(ConfigurationError) -> AcceptPolicy? {
        guard let content = try ConfigurationFile.contents(of: path) else { return nil }
        return try AcceptPolicy(parsing: content)
    }
}

/// Keeps the policy of the user's file in memory, and reads the file again when it has changed.
///
/// With a mistake in it, the file accepts nothing and goes on refusing what it says that it refuses. A file that cannot
/// be read, or that others could have written, counts for nothing: what was refused before stays refused, and nothing
/// is accepted.
///
/// The kernel's memory tells whether the file has changed. Only if it has, or if the kernel would have to look, the
/// storage thread reads: a configuration folder may be on a disk that blocks.
final class PolicyKeeper: Sendable {
    private typealias Version = Result<DurableFile.Version, Errno>

    private struct State {
        /// Nil if the file has to be read again.
        var version: Version?
        var policy = AcceptPolicy()
        /// What is wrong with the file, for people.
        var problem: String?
    }

    private let path: FilePath
    private let logger: Logger
    private let state = Lock(State())

    init(path: FilePath, logger: Logger) {
        self.path = path
        self.logger = logger
    }

    /// The policy as the file has it now.
    @ControlLoop
    func current() async -> AcceptPolicy {
        let state = state.withLock { $0 }
        if let version = state.version, version == self.version { return state.policy }
        return await look().policy
    }

    /// What is wrong with the file as it is now.
    func currentProblem() async -> String? { await look().problem }

    /// The file as the kernel has it in memory, or that there is none. Nil if the kernel would have to look.
    private var version: Version? {
        do throws(Errno) {
            return .success(try DurableFile.Version(inMemoryOf: path))
        } catch {
            return error == .noSuchFileOrDirectory ? .failure(error) : nil
        }
    }

    @StorageThread
    private func look() -> State {
        let before = state.withLock { $0 }
        // The kernel has the path in memory then.
        _ = try? path.stat()
        // The version is older than the content. If the file changes meanwhile, it is read again the next time.
        var state = State(version: version, policy: before.policy)
        do throws(ConfigurationError) {
            let parsed = AcceptPolicy.parse(try ConfigurationFile.contents(of: path) ?? [])
            state.policy = parsed.policy
            if let mistake = parsed.mistake { throw mistake }
            if state.policy != before.policy || before.problem != nil {
                logger.notice("accept policy: \(HumanUnits.count(state.policy.rules.count, "rule"))")
            }
        } catch {
            // A problem with reading may pass by itself.
            state.version = nil
            state.policy = state.policy.asking
            let problem = "\(path): \(error)"
            state.problem = problem
            if problem != before.problem {
                logger.warning("accept policy: \(problem); \(AcceptPolicyFile.meaningOfMistake)")
            }
        }
        let new = state
        self.state.withLock { $0 = new }
        return new
    }
}

extension AcceptPolicy.Subject {
    /// What is known of one activity of a device.
    init(_ peer: Peer, type: String, size: UInt64) {
        self.init(
            deviceID: peer.device.description, deviceName: peer.name, type: type, size: size,
            interfaces: Set(peer.interfaces.compactMap { InterfaceAddress.interfaceName($0) }),
            addresses: peer.addresses.compactMap(\.ipAddress))
    }
}
