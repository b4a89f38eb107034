// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import BatonProtocol
import BatonTransport

/// The node's one gate, asked from every connection's event loop.
final class GateKeeper: Sendable {
    private let gate: Lock<Gate>
    /// Asks for another period.
    private let crowded: @Sendable () -> Void

    /// - Parameter crowded: called when the present period has used up its tokens.
    init(of device: DeviceID, crowded: @escaping @Sendable () -> Void) {
        gate = Lock(Gate(device: device))
        self.crowded = crowded
    }

    /// Advertisements carry another nonce from now on, and are sealed with these keys.
    func beginPeriod(nonce: [UInt8], keys: GenerationKeys) {
        gate.withLock { $0.beginPeriod(nonce: nonce, keys: keys, uptime: Self.uptime) }
    }

    /// Whether a client's server name would be admitted now; nothing is remembered of it.
    func wouldAdmit(_ serverName: String, from address: IPAddress?) -> Bool {
        gate.withLock { $0.wouldAdmit(serverName, from: address?.bytes, uptime: Self.uptime) }
    }

    /// The generation of the account's keys that a client showed to have; `nil` for a stranger.
    ///
    /// - Parameter address: the address of the client; nil, the default, counts for none.
    func admit(_ serverName: String?, from address: IPAddress? = nil) -> UInt32? {
        let (generation, hasBecomeCrowded) = gate.withLock { gate in
            let wasCrowded = gate.isCrowded
            let generation = gate.admit(serverName, from: address?.bytes, uptime: Self.uptime)
            return (generation, gate.isCrowded && !wasCrowded)
        }
        if hasBecomeCrowded { crowded() }
        return generation
    }

    private static var uptime: Duration { .nanoseconds(Int64(clamping: Instant.now.nanoseconds)) }
}
