public import BatonAccount
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
public struct AccountLookup: Sendable {
    /// What came of it.
    public struct Outcome: Sendable {
        /// The account, with everything that was found.
        public var account: Account
        /// The devices that answered, which shows that they are of the account.
        public var met: [KnownDevices.Entry] = []
        /// Why nobody can be found: a sentence of the DNS-SD responder's.
        public var trouble: String?
    }

    /// How long the search goes on for devices under other lists, after the first has answered.
    private static let grace = Duration.seconds(1)
    /// How long one device may take to be reached, and to answer then. Default 5 s.
    var answerDeadline = Duration.seconds(5)

    private let account: Account
    private let secrets: AccountSecrets

    /// A search.
    ///
    /// - Parameters:
    ///   - account: this device's part of the account, which must have been issued under the same key.
    ///   - secrets: of the account key.
    public init(for account: Account, with secrets: AccountSecrets) {
        self.account = account
        self.secrets = secrets
    }

    /// Looks for so long at the most; ends sooner when devices have answered, or when there is no DNS-SD responder.
    public func run(within limit: Duration) async -> Outcome {
        var outcome = Outcome(account: account)
        let loop = EventLoop(name: "lookup")
        let discovery: ServiceDiscovery
        let context: TLSContext
        do {
            discovery = ServiceDiscovery(loop: loop, executor: try BlockingExecutor(name: "lookup"))
            context = try TLSContext(identity: TLSIdentity(account.identity))
        } catch {
            outcome.trouble = "\(error)"
            return outcome
        }
        let opener = JoiningOpener(secrets: secrets, ownDevice: account.identity.id)
        let (notices, notice) = AsyncStream<Notice>.makeStream(bufferingPolicy: .bufferingNewest(256))
        let searching = Task {
            await discovery.start()
            for await event in discovery.events { notice.yield(.discovery(event)) }
        }
        let end = Timer(on: loop) { notice.finish() }
        end.schedule(after: limit)
        await withDiscardingTaskGroup { group in
            var asked = AskedDevices<Heard>()
            let context = context
            func question(_ heard: Heard, having own: Account) {
                group.addTask {
                    let answer = await ask(heard.opened, at: heard.addresses, through: context, on: loop, having: own)
                    notice.yield(.answer(answer, to: heard))
                }
            }
            for await next in notices {
                switch next {
                case .discovery(.record(let instance, let interface, let txt)):
                    guard let opened = try? opener.open(txt) else {
                        discovery.reject(instance)
                        continue
                    }
                    let advertisement = opened.advertisement
                    let heard = Heard(
                        opened: opened,
                        addresses: PeerTable.addresses(of: advertisement.content, interfaces: [interface]))
                    let isNew = asked.begin(
                        heard, of: advertisement.device, (advertisement.epoch, advertisement.sequence),
                        under: opened.keys.generation)
                    if isNew { question(heard, having: outcome.account) }
                case .discovery(.responder(.unavailable(let reason, _))):
                    outcome.trouble = reason
                    notice.finish()
                case .discovery:
                    continue
                case .answer(let answer, let heard):
                    let opened = heard.opened
                    if let next = asked.end(opened.advertisement.device, under: opened.keys.generation), answer == nil {
                        question(next, having: outcome.account)
                    }
                    guard let answer else { continue }
                    outcome.met.append(answer.device)
                    _ = try? outcome.account.take(answer.lists)
                    end.schedule(after: Self.grace)
                }
            }
            group.cancelAll()
        }
        end.cancel()
        searching.cancel()
        await discovery.stop()
        return outcome
    }

    private enum Notice: Sendable {
        case discovery(DiscoveryEvent)
        /// What a device has; nil when it could not be asked.
        case answer(Answer?, to: Heard)
    }

    /// What a device announces.
    private struct Heard: Sendable {
        let opened: (advertisement: Advertisement, keys: GenerationKeys)
        let addresses: [SocketAddress]
    }

    /// What a device has.
    struct Answer: Sendable {
        let device: KnownDevices.Entry
        let lists: [GivenList]
    }

    /// Asks a device what it has.
    ///
    /// - Returns: nil when it could not be asked, or did not answer in time.
    func ask(
        _ opened: (advertisement: Advertisement, keys: GenerationKeys), at addresses: [SocketAddress],
        through context: TLSContext, on loop: EventLoop, having own: Account
    ) async -> Answer? {
        let advertisement = opened.advertisement
        do {
            let socket = try await Socket.connect(toAnyOf: addresses, on: loop, timeout: answerDeadline)
            let session = try TLSSession(
                client: context,
                serverName: GateToken.serverName(
                    keys: opened.keys, server: advertisement.device, gateNonce: advertisement.gateNonce),
                expectedPeer: advertisement.device.description)
            let connection = Connection(
                socket: socket, channel: TLSChannel(session, isClient: true), role: .dialer,
                revocationNumber: own.state.revision, on: loop)
            await connection.start()
            let answer: (revision: UInt64, lists: [WireSignedList])
            do {
                answer = try await connection.accountState(asking: own.state.revision, within: answerDeadline)
            } catch {
                await connection.abort()
                throw error
            }
            await connection.close()
            let device = KnownDevices.Entry(
                deviceID: advertisement.device.description, name: advertisement.content.deviceName,
                seen: UInt64(Date().timeIntervalSince1970), revision: answer.revision, isProved: true)
            return Answer(device: device, lists: try answer.lists.read(by: own.identity.authorityKey))
        } catch {
            return nil
        }
    }
}
