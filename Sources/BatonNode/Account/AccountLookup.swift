// SPDX-License-Identifier: Apache-2.0

package import BatonAccount
import BatonCore
import BatonDiscovery
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTLS
import BatonTransport
import FoundationEssentials

/// Looks for devices of an account while the account key is at hand, and takes over what they know of its revocations.
///
/// `baton account join` does it before it erases the key, and `baton devices revoke` before it signs. The key opens
/// advertisements under any list (``JoiningOpener``), also under lists that were signed apart from those known here.
///
/// It is the driver of ``AccountSearch``, for one search.
@ControlLoop
package final class AccountLookup {
    /// The result of a search.
    package struct Outcome: Sendable {
        /// The account, with everything that was found.
        package var account: Account
        /// The devices that answered, which shows that they are of the account.
        package var met: [KnownDevices.Entry] = []
        /// The device that first showed lists that could not be taken over, and why; nil if all could. A device may be
        /// revoked that the account does not name.
        package var untaken: (device: KnownDevices.Entry, reason: RevocationError)?
        /// Why nobody can be found: a sentence of the DNS-SD responder's.
        package var trouble: String?
        /// Whether more names are announced than there was time to look at.
        package var isIncomplete = false

        /// Takes over what a device has.
        ///
        /// - Returns: whether its lists could be taken.
        mutating func take(_ answer: Answer) -> Bool {
            met.append(answer.device)
            do throws(RevocationError) {
                _ = try account.take(answer.lists.get())
                return true
            } catch {
                if untaken == nil { untaken = (answer.device, error) }
                return false
            }
        }
    }

    /// What a device has.
    struct Answer: Sendable {
        let device: KnownDevices.Entry
        /// Failed if one cannot be read.
        let lists: Result<[GivenList], RevocationError>
    }

    /// How long one device may take to be reached and to answer: 5 s.
    nonisolated static let answerDeadline = Duration.seconds(5)
    /// How often it looks whether the search is over.
    private static let pause = Duration.milliseconds(100)

    private let opener: JoiningOpener
    private var search: AccountSearch
    private var outcome: Outcome
    private var questions: [AccountSearch.Candidate: Task<Void, Never>] = [:]

    /// A search.
    ///
    /// - Parameters:
    ///   - account: this device's part of the account, which must have been issued under the same key.
    ///   - secrets: of the account key.
    ///   - limit: how long to look, or for a second after devices have answered, but three in all, and then until the
    ///     devices that were found have answered. It takes three times as long if so many names are announced that
    ///     there was no time for all.
    package nonisolated init(for account: Account, with secrets: AccountSecrets, within limit: Duration) {
        opener = JoiningOpener(secrets: secrets, ownDevice: account.identity.id)
        search = AccountSearch(within: limit, from: .now)
        outcome = Outcome(account: account)
    }

    /// Looks for devices. It ends at once if there is no DNS-SD responder. Call once.
    package func run() async -> Outcome {
        do {
            let discovery = ServiceDiscovery(loop: ControlLoop.loop, executor: try BlockingExecutor(name: "lookup"))
            let context = try TLSContext(identity: TLSIdentity(outcome.account.identity))
            await look(with: discovery, through: context)
            await discovery.stop()
        } catch {
            outcome.trouble = "\(error)"
        }
        return outcome
    }

    private func look(with discovery: ServiceDiscovery, through context: TLSContext) async {
        await withDiscardingTaskGroup { group in
            group.addTask { @ControlLoop @Sendable in
                await discovery.start()
                for await event in discovery.events { self.hear(event, from: discovery, through: context) }
            }
            while !search.isOver, outcome.trouble == nil {
                try? await Alarm.sleep(for: Self.pause)
                let isBehind = await discovery.isBehind
                search.advance(to: .now, isBehind: isBehind)
            }
            group.cancelAll()
        }
        for question in questions.values {
            question.cancel()
            await question.value
        }
        outcome.isIncomplete = search.isIncomplete
    }

    private func hear(_ event: DiscoveryEvent, from discovery: ServiceDiscovery, through context: TLSContext) {
        switch event {
        case .record(let instance, let interface, let txt):
            guard let opened = try? opener.open(txt) else { return discovery.reject(instance) }
            discovery.follow(instance)
            ask(opened, on: interface, through: context)
        case .responder(.unavailable(let reason, _)): outcome.trouble = reason
        case .responder, .removed, .rotationDue, .registered: break
        }
    }

    private func ask(
        _ opened: (advertisement: Advertisement, keys: GenerationKeys), on interface: UInt32,
        through context: TLSContext
    ) {
        let advertisement = opened.advertisement
        let candidate = AccountSearch.Candidate(device: advertisement.device, keys: opened.keys.id)
        guard search.begin(candidate, (advertisement.epoch, advertisement.sequence)) else { return }
        questions[candidate]?.cancel()
        let addresses = SocketAddress.dialled(
            of: advertisement.content.addresses, port: advertisement.content.port, interfaces: [interface])
        let own = outcome.account
        questions[candidate] = ControlLoop.task {
            let answer = await Self.ask(opened, at: addresses, through: context, having: own)
            let isTaken = answer.map { self.outcome.take($0) } ?? false
            if !Task.isCancelled { self.search.end(candidate, isTaken: isTaken, at: .now) }
        }
    }

    /// Asks a device what it has.
    ///
    /// - Returns: nil when it could not be asked, or did not answer in time.
    nonisolated static func ask(
        _ opened: (advertisement: Advertisement, keys: GenerationKeys), at addresses: [SocketAddress],
        through context: TLSContext, having own: Account, within answerDeadline: Duration = answerDeadline
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
