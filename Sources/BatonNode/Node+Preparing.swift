// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonApplications
import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonTLS
import BatonTransport
import FoundationEssentials
import Glibc
import Logging

import struct SystemPackage.Errno
import struct SystemPackage.FilePath

/// The state that a node has kept from its last run.
struct KeptState: Sendable {
    let account: Account
    let epoch: UInt64
    let replayGuard: ReplayGuard
    let known: KnownDevices
    let ledger: PartFileLedger
    let handoffSwitch: HandoffSwitchKeeper
    let recentApplications: RecentApplications
}

/// Prepares the parts of a node. Functions that read a disk leave the control loop.
extension Node {
    /// Takes the account for as long as the node runs.
    nonisolated func takeHold(of store: AccountStore) async throws(NodeError) -> AccountHold {
        do {
            return try store.hold()
        } catch .nodeRunning {
            throw .alreadyRunning(
                "a node is running with this account already, but does not listen at \(home.socketPath): it was started"
                    + " with another XDG_RUNTIME_DIR than this one; stop it, or set BATON_HOME for a second one")
        } catch {
            throw .account("\(error)")
        }
    }

    nonisolated func load(_ store: AccountStore) async throws(NodeError) -> KeptState {
        let (account, epoch, known): (Account, UInt64, KnownDevices)
        do {
            account = try store.load()
            epoch = try store.nextEpoch(unixTime: UInt64(Date().timeIntervalSince1970))
            known = try store.loadKnownDevices()
        } catch {
            throw .account("\(error)")
        }
        var replayGuard = ReplayGuard()
        do {
            replayGuard = try store.loadReplayGuard()
        } catch {
            logger.warning("what was seen of other devices is lost: \(error)")
        }
        do {
            let ledger = try PartFileLedger(stateFolder: FilePath(home.stateFolder).appending("parts"))
            try ledger.removeLeftovers()
            let handoffSwitch = HandoffSwitchKeeper(
                path: HandoffSwitch.path(in: home), marker: HandoffSwitch.marker(in: home), logger: logger)
            return KeptState(
                account: account, epoch: epoch, replayGuard: replayGuard, known: known, ledger: ledger,
                handoffSwitch: handoffSwitch,
                recentApplications: RecentApplications(
                    reading: RecentApplications.path(in: FilePath(home.stateFolder))))
        } catch {
            throw .unusable("\(error)")
        }
    }

    func listen() throws(NodeError) -> PeerListeners {
        let (port, deadline) = (configuration.port, limits.admissionDeadline)
        do {
            return try PeerListeners(
                isFixed: port != 0, at: Announcer.ownNetworkAddresses(), logger: logger
            ) {
                () throws(SocketError) in
                try Listener.onAllAddresses(port: port, on: ControlLoop.loop, defersAccept: deadline)
            }
        } catch {
            guard error.code == .addressInUse else { throw .unusable("\(error)") }
            throw .unusable(
                "port \(port) is in use by another program: choose another with --port, or leave it out to take a free"
                    + " one")
        }
    }

    nonisolated func prepareFolders() async throws(NodeError) {
        do {
            try HomeFolder.prepare(home.configurationFolder, .configuration)
            for path in [home.stateFolder, home.runtimeFolder] { try HomeFolder.prepare(path, .secret) }
        } catch {
            throw .unusable(
                "the folder \(error.path) cannot be used (\(error.reason)): check it, BATON_HOME and the XDG folders")
        }
        do {
            _ = try Landlock.version()
        } catch {
            logger.warning(
                "this kernel has no Landlock (\(error)): documents of other devices are refused until it has")
        }
    }

    func context(_ account: CurrentAccount, _ gate: GateKeeper) throws(NodeError) -> TLSContext {
        do {
            return try TLSContext(
                identity: TLSIdentity(account.value.identity), gate: { gate.admit($0) }, refuses: account.isRevoked)
        } catch {
            throw .account(
                "this device's certificate cannot be used: \(error); run `baton account leave` and join again")
        }
    }

    static func executor(_ name: String) throws(NodeError) -> BlockingExecutor {
        do {
            return try BlockingExecutor(name: name)
        } catch {
            throw .unusable("the system has no thread to give (\(error)): end other programs and try again")
        }
    }
}
