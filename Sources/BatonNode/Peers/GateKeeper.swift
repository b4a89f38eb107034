import BatonAccount
import BatonEventLoop
import BatonProtocol
import BatonTransport
import FoundationEssentials

/// The node's one gate, asked from every connection's event loop.
final class GateKeeper: Sendable {
    private let gate: Lock<Gate>
    /// Asks for another period.
    private let crowded: @Sendable () -> Void

    /// - Parameters:
    ///   - clockDelay: how long it takes no token of the clock.
    ///   - crowded: called when the present period has used up its tokens.
    init(of device: DeviceID, clockDelay: Duration = Gate.clockDelay, crowded: @escaping @Sendable () -> Void) {
        gate = Lock(Gate(device: device, clockDelay: clockDelay))
        self.crowded = crowded
    }

    /// Advertisements carry another nonce from now on, and are sealed with these keys.
    func beginPeriod(nonce: [UInt8], keys: GenerationKeys) {
        gate.withLock { $0.beginPeriod(nonce: nonce, keys: keys, uptime: Self.uptime) }
    }

    /// The generation of the account's keys that a client showed to have; `nil` for a stranger.
    func admit(_ serverName: String?) -> UInt32? {
        let (generation, hasBecomeCrowded) = gate.withLock { gate in
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
