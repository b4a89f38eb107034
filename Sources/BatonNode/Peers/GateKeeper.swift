import BatonAccount
import BatonEventLoop
import BatonProtocol
import BatonTransport
import FoundationEssentials

/// The node's one gate, asked from every connection's event loop.
final class GateKeeper: Sendable {
    private let account: CurrentAccount
    private let gate: Lock<Gate>
    /// Asks for another period.
    private let crowded: @Sendable () -> Void

    /// - Parameter crowded: called when the present period has used up its tokens.
    init(_ account: CurrentAccount, crowded: @escaping @Sendable () -> Void) {
        self.account = account
        let account = account.value
        gate = Lock(Gate(device: account.identity.id, keys: account.keys))
        self.crowded = crowded
    }

    /// Advertisements carry another nonce from now on.
    func beginPeriod(nonce: [UInt8]) {
        gate.withLock { $0.beginPeriod(nonce: nonce, uptime: Self.uptime) }
    }

    /// The generation of the account's keys that a client showed to have; `nil` for a stranger.
    func admit(_ serverName: String?) -> UInt32? {
        let (generation, hasBecomeCrowded) = gate.withLock { gate in
            // Older generations are let in to take the present one over; who was revoked is refused by TLS.
            gate.keys = account.value.keys
            let wasCrowded = gate.isCrowded
            let generation = try? gate.admit(
                serverName, uptime: Self.uptime, unixTime: UInt64(Date().timeIntervalSince1970))
            return (generation, gate.isCrowded && !wasCrowded)
        }
        if hasBecomeCrowded { crowded() }
        return generation
    }

    private static var uptime: Duration { .nanoseconds(Int64(clamping: Instant.now.nanoseconds)) }
}
