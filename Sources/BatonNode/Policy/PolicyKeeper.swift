// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonDocuments
import BatonEventLoop
import BatonProtocol
import Glibc
import Logging

import struct SystemPackage.FilePath

/// The policy in force: the file's, read again when it has changed; while something in it is wrong, only what it
/// refuses, and while it cannot be read, only what it refused when this keeper could last read it.
///
/// It lives on the node's storage thread, because a configuration folder may be on a disk that blocks.
@StorageThread
final class PolicyKeeper {
    private let path: FilePath
    private let userHome: FilePath?
    private let logger: Logger
    /// `nil` before the first look.
    private var version: ConfigurationFile.Version?
    private var policy = AcceptPolicy()
    /// What is wrong with the file, for people; `nil` where nothing is.
    private var problem: String?

    nonisolated init(path: FilePath, userHome: FilePath?, logger: Logger) {
        self.path = path
        self.userHome = userHome
        self.logger = logger
    }

    /// The policy as the file has it now. One `stat` unless it has changed, and a few where there is none.
    func current() -> AcceptPolicy {
        look()
        return policy
    }

    /// What is wrong with the file as it is now.
    func currentProblem() -> String? {
        look()
        return problem
    }

    private func look() {
        // Before the reading: what is written meanwhile is read the next time.
        let version = ConfigurationFile.Version(of: path)
        // What went wrong with reading may pass by itself.
        guard version != self.version || problem != nil else { return }
        let before = problem
        let isFirst = self.version == nil
        self.version = version
        let (policy, error) = AcceptPolicyFile.inForce(path, userHome: userHome, after: self.policy)
        self.policy = policy
        problem = error.map { "\(path): \($0)" }
        if let error {
            guard problem != before else { return }
            logger.warning("accept policy: \(path): \(error); \(AcceptPolicyFile.meaningOfMistake)")
        } else if !isFirst || !policy.rules.isEmpty {
            logger.notice("accept policy: \(HumanUnits.count(policy.rules.count, "rule"))")
        }
    }
}

extension AcceptPolicy.Subject {
    /// What is known of one activity of a device.
    init(_ peer: Peer, type: String, size: UInt64) {
        self.init(
            deviceID: peer.device.description, deviceName: peer.name, type: type, size: size,
            interfaces: peer.interfaces.compactMap { InterfaceAddress.interfaceName($0) },
            addresses: peer.addresses.compactMap(\.ipAddress))
    }
}
