// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import BatonTLS
import BatonTransport
import FoundationEssentials
import Glibc
import Logging

import struct SystemPackage.Errno

/// What a node needs before its parts are put together.
extension Node {
    /// Takes the account for as long as the node runs.
    func takeHold(of store: AccountStore) throws(NodeError) -> AccountHold {
        do {
            return try store.hold()
        } catch .nodeRunning {
            throw .accountInUse(socket: home.socketPath)
        } catch {
            throw .account(error)
        }
    }

    func load(
        _ store: AccountStore
    ) throws(NodeError) -> (Account, UInt64, ReplayGuard, KnownDevices) {
        do {
            let account = try store.load()
            let epoch = try store.nextEpoch(unixTime: UInt64(Date().timeIntervalSince1970))
            let known = try store.loadKnownDevices()
            do {
                return (account, epoch, try store.loadReplayGuard(), known)
            } catch {
                logger.warning("what was seen of other devices is lost: \(error)")
                return (account, epoch, ReplayGuard(), known)
            }
        } catch {
            throw .account(error)
        }
    }

    func listen(on loop: EventLoop) throws(NodeError) -> PeerListeners {
        let (port, deadline) = (configuration.port, limits.admissionDeadline)
        do {
            return try PeerListeners(
                isFixed: port != 0, at: Announcer.ownNetworkAddresses(), on: loop, logger: logger
            ) {
                () throws(SocketError) in
                try Listener.onAllAddresses(port: port, on: loop, defersAccept: deadline)
            }
        } catch {
            throw error.code == .addressInUse ? .portInUse(configuration.port) : .socket(error)
        }
    }

    func prepareFolders() throws(NodeError) {
        do {
            try HomeFolder.prepare(home.configurationFolder, .configuration)
            for path in [home.stateFolder, home.runtimeFolder] { try HomeFolder.prepare(path, .secret) }
        } catch {
            throw .folder(path: error.path, reason: error.reason)
        }
    }

    func context(_ account: CurrentAccount, _ gate: GateKeeper) throws(NodeError) -> TLSContext {
        do {
            return try TLSContext(
                identity: TLSIdentity(account.value.identity), gate: { gate.admit($0) }, refuses: account.isRevoked)
        } catch {
            throw .identity(error)
        }
    }

    static func executor(_ name: String) throws(NodeError) -> BlockingExecutor {
        do {
            return try BlockingExecutor(name: name)
        } catch {
            throw .threads(error)
        }
    }
}
