// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// The server's side of the gate: tells whether a server name is a fresh token of this account. Each token counts once.
///
/// A value that is told the time; its owner locks it. A stranger cannot change it, because only tokens with a valid tag
/// are remembered. A remembered token is refused for as long as its nonce counts. See ``GateToken`` for the form of a
/// token.
package struct Gate: Sendable {
    /// The most tokens that are remembered for one nonce, 16 bytes each. The devices of an account use a few in a
    /// quarter of an hour. At the bound no token of that nonce is admitted, since it could be a used one; ``isCrowded``
    /// then asks for another period.
    package static let tokenBound = 4096
    /// The most of these tokens from one address, so that one device alone cannot keep all others out. Beyond the bound
    /// the address is not admitted by that nonce. A device with eight addresses can still use up all tokens.
    package static let tokenBoundPerOrigin = 512
    /// Gate nonces that count at once: that of the present period, and of periods that ended in quick succession, as a
    /// machine that moves between networks has them.
    package static let periodBound = 4
    /// How long the nonce of a period counts after its end: others may hold the advertisement of an activity for its
    /// time to live. They may hold that of an idle device for longer if they miss the next one, and cannot dial it
    /// then.
    package static let periodGrace = Duration.seconds(Int64(Advertisement.maximumTimeToLive) + 60)

    private struct Period {
        let nonce: [UInt8]
        /// The keys that its advertisements were sealed with.
        let keys: GenerationKeys
        /// When it stops to count; nil for the present one.
        var endsAt: Duration?
        private(set) var used: Set<[UInt8]> = []
        /// How many of them came from an address; no more entries than tokens.
        private var byOrigin: [[UInt8]: Int] = [:]

        init(nonce: [UInt8], keys: GenerationKeys) {
            (self.nonce, self.keys) = (nonce, keys)
        }

        func hasRoom(for clientNonce: [UInt8], from origin: [UInt8]?) -> Bool {
            !used.contains(clientNonce) && used.count < Gate.tokenBound
                && origin.map { byOrigin[$0, default: 0] < Gate.tokenBoundPerOrigin } ?? true
        }

        mutating func enter(_ clientNonce: [UInt8], from origin: [UInt8]?) {
            used.insert(clientNonce)
            if let origin { byOrigin[origin, default: 0] += 1 }
        }
    }

    package let device: DeviceID
    /// The present period is the last.
    private var periods: [Period] = []

    package init(device: DeviceID) {
        self.device = device
    }

    /// Whether the present period has used up its tokens, and another should begin.
    package var isCrowded: Bool { (periods.last?.used.count ?? 0) >= Self.tokenBound }

    /// Begins a period: from now on advertisements carry this nonce.
    ///
    /// After a revocation the keys change. The keys of the last generation then admit only to its own periods, for as
    /// long as those count: a device that slept comes in to catch up, and a revoked device comes in to be refused by
    /// TLS.
    ///
    /// - Parameters:
    ///   - keys: The keys that advertisements of the period are sealed with.
    ///   - uptime: The time by a clock that never jumps.
    package mutating func beginPeriod(nonce: [UInt8], keys: GenerationKeys, uptime: Duration) {
        if let last = periods.indices.last { periods[last].endsAt = uptime + Self.periodGrace }
        periods.append(Period(nonce: nonce, keys: keys))
        if periods.count > Self.periodBound { periods.removeFirst() }
    }

    /// Judges the server name of a client, and remembers it as used. Computes at most ``periodBound`` tags.
    ///
    /// - Parameters:
    ///   - origin: The bytes of the address that it came from; nil, the default, counts for none.
    ///   - uptime: The clock of ``beginPeriod(nonce:keys:uptime:)``.
    /// - Returns: The generation of keys that the token was made with; nil if it is none, was used, or has no room.
    package mutating func admit(_ serverName: String?, from origin: [UInt8]? = nil, uptime: Duration) -> UInt32? {
        guard let (clientNonce, period) = judge(serverName, from: origin, uptime: uptime) else { return nil }
        periods[period].enter(clientNonce, from: origin)
        return periods[period].keys.generation
    }

    /// Whether a server name would be admitted now. It is not remembered, and still has to be admitted.
    ///
    /// The parameters are those of ``admit(_:from:uptime:)``.
    package mutating func wouldAdmit(_ serverName: String?, from origin: [UInt8]? = nil, uptime: Duration) -> Bool {
        judge(serverName, from: origin, uptime: uptime) != nil
    }

    private mutating func judge(
        _ serverName: String?, from origin: [UInt8]?, uptime: Duration
    ) -> (clientNonce: [UInt8], period: Int)? {
        guard let serverName, let (clientNonce, tag) = Self.parse(serverName) else { return nil }
        periods.removeAll { $0.endsAt.map { $0 <= uptime } ?? false }
        for index in periods.indices.reversed() {
            let period = periods[index]
            let expected = GateToken.tag(
                period.keys, to: device, gateNonce: period.nonce, clientNonce: clientNonce)
            guard Self.areEqual(expected, tag) else { continue }
            return period.hasRoom(for: clientNonce, from: origin) ? (clientNonce, index) : nil
        }
        return nil
    }

    private static func parse(_ serverName: String) -> (clientNonce: [UInt8], tag: [UInt8])? {
        // Reads bytes: a token is ASCII, and comparing characters costs many times more.
        let text = serverName.utf8
        guard text.count == GateToken.labelCount + GateToken.suffix.utf8.count,
            text.suffix(GateToken.suffix.utf8.count).elementsEqual(GateToken.suffix.utf8),
            let bytes = Base32.decode(text.prefix(GateToken.labelCount)),
            bytes.count == GateToken.clientNonceCount + GateToken.tagCount
        else { return nil }
        return (Array(bytes[..<GateToken.clientNonceCount]), Array(bytes[GateToken.clientNonceCount...]))
    }

    /// Compares without telling by the time it takes how much is right.
    private static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        var difference: UInt8 = 0
        for index in left.indices { difference |= left[index] ^ right[index] }
        return difference == 0
    }
}
