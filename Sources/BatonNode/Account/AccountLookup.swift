// SPDX-License-Identifier: Apache-2.0

package import BatonAccount
import BatonDiscovery
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTLS
import BatonTransport
import FoundationEssentials

/// Looks for devices of an account while the account key is at hand, and takes over what they know of its revocations.
///
/// What `baton account join` does before it erases the key, and `baton devices revoke` before it signs. The key opens
/// advertisements under any list (``JoiningOpener``), also under lists that were signed apart from those known here.
package struct AccountLookup: Sendable {
    /// What came of it.
    package struct Outcome: Sendable {
        /// The account, with everything that was found.
        package var account: Account
        /// The devices that answered, which shows that they are of the account.
        package var met: [KnownDevices.Entry] = []
        /// Who first showed lists that could not be taken over, and why; `nil` where all could. Somebody may be revoked
        /// whom the account does not name.
        package var untaken: (device: KnownDevices.Entry, reason: RevocationError)?
        /// Why nobody can be found: a sentence of the DNS-SD responder's.
        package var trouble: String?
        /// Whether more names are announced than there was time to look at.
        package var isIncomplete = false
    }

    /// How long one device may take to be reached and to answer. Default 5 s.
    var answerDeadline = Duration.seconds(5)

    let account: Account
    private let secrets: AccountSecrets

    /// A search.
    ///
    /// - Parameters:
    ///   - account: this device's part of the account, which must have been issued under the same key.
    ///   - secrets: of the account key.
    package init(for account: Account, with secrets: AccountSecrets) {
        self.account = account
        self.secrets = secrets
    }

    /// Looks for so long, or for a second after devices have answered, but three in all, and then until those have that
    /// were found; for three times as long where so many names are announced that they have not all been looked at by
    /// then. Ends at once where there is no DNS-SD responder.
    package func run(within limit: Duration) async -> Outcome {
        let discovery: ServiceDiscovery
        let context: TLSContext
        do {
            discovery = ServiceDiscovery(loop: ControlLoop.loop, executor: try BlockingExecutor(name: "lookup"))
            context = try TLSContext(identity: TLSIdentity(account.identity))
        } catch {
            return Outcome(account: account, trouble: "\(error)")
        }
        let opener = JoiningOpener(secrets: secrets, ownDevice: account.identity.id)
        let search = AccountSearch(for: account, opener: opener) { opened, addresses, own in
            await ask(opened, at: addresses, through: context, having: own)
        }
        await search.begin(within: limit) { await discovery.isBehind }
        do {
            async let _: Void = listen(to: discovery, for: search)
            for await _ in search.end {}
        }
        let outcome = await search.stop()
        await discovery.stop()
        return outcome
    }

    private func listen(to discovery: ServiceDiscovery, for search: AccountSearch) async {
        await discovery.start()
        for await event in discovery.events {
            let isOfAccount = await search.hear(event)
            guard case .record(let instance, _, _) = event else { continue }
            // A copy of what a device said once takes no more time than its one record.
            if isOfAccount { discovery.follow(instance) } else { discovery.reject(instance) }
        }
    }

    /// What a device has.
    struct Answer: Sendable {
        let device: KnownDevices.Entry
        /// Failed where one cannot be read.
        let lists: Result<[GivenList], RevocationError>
    }

    /// Asks a device what it has.
    ///
    /// - Returns: nil when it could not be asked, or did not answer in time.
    func ask(
        _ opened: (advertisement: Advertisement, keys: GenerationKeys), at addresses: [SocketAddress],
        through context: TLSContext, having own: Account
    ) async -> Answer? {
        let advertisement = opened.advertisement
        let begin = ContinuousClock.now
        do {
            let socket = try await Socket.connect(toAnyOf: addresses, on: ControlLoop.loop, timeout: answerDeadline)
            let session = try TLSSession(
                client: context,
                serverName: GateToken.serverName(
                    keys: opened.keys, server: advertisement.device, gateNonce: advertisement.gateNonce),
                expectedPeer: advertisement.device.description)
            let connection = Connection(
                socket: socket, channel: TLSChannel(session, isClient: true), role: .dialer,
                revocationNumber: own.state.revision, on: ControlLoop.loop)
            await connection.start()
            let answer: ToldState
            do {
                answer = try await connection.accountState(
                    asking: own.state.revision, within: answerDeadline - begin.duration(to: .now))
            } catch {
                await connection.abort()
                throw error
            }
            await connection.close()
            let device = KnownDevices.Entry(
                deviceID: advertisement.device.description, name: advertisement.content.deviceName,
                seen: UInt64(Date().timeIntervalSince1970), revision: answer.revision, isProved: true)
            let lists = Result { () throws(RevocationError) in
                try answer.lists.read(wrappedBy: answer.key, by: own.identity.authorityKey)
            }
            return Answer(device: device, lists: lists)
        } catch {
            return nil
        }
    }
}
