// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// The server's side of the gate: tells whether a server name is a fresh token of this account. Each token counts once.
///
/// A value that is told the time; its owner locks it. A stranger cannot change it, because only tokens with a valid tag
/// are remembered. A remembered token is refused for as long as its nonce, or its step of the clock, counts. See
/// ``GateToken`` for the form of a token.
package struct Gate: Sendable {
    /// The most tokens that are remembered for one nonce or step, 16 bytes each. The devices of an account use a few in
    /// a quarter of an hour. At the bound no token of that nonce or step is admitted, since it could be a used one;
    /// ``isCrowded`` then asks for another period.
    package static let tokenBound = 4096
    /// The most of these tokens from one address, so that one device alone cannot keep all others out. Beyond the bound
    /// the address is not admitted by that nonce or step. A device with eight addresses can still use up all tokens.
    package static let tokenBoundPerOrigin = 512
    /// Gate nonces that count at once: that of the present period, and of periods that ended in quick succession, as a
    /// machine that moves between networks has them.
    package static let periodBound = 4
    /// How long the nonce of a period counts after its end: others may hold the advertisement of an activity for its
    /// time to live. They may hold that of an idle device for longer if they miss the next one, and cannot dial it
    /// then.
    package static let periodGrace = Duration.seconds(Int64(Advertisement.maximumTimeToLive) + 60)
    /// How long a new gate admits no token of the clock, measured by a clock that never jumps.
    ///
    /// A gate does not know which tokens the gate before it admitted. After this time none of those counts any longer.
    package static let clockDelay = Duration.seconds(3 * Int64(GateToken.stepSeconds))

    package enum Refusal: Error, Sendable, Hashable {
        /// It does not have the form of one, or there is none.
        case malformed
        /// Its tag is by no key, for no nonce and no time that count.
        case forged
        case repeated
        /// Too many have been used: see ``Gate/tokenBound``, and ``Gate/tokenBoundPerOrigin``.
        case crowded
        /// It is of the clock, and may have been used before this gate began, or before the clock was set back.
        case forgotten
    }

    private struct Book {
        var used: Set<[UInt8]> = []
        /// How many of them came from an address; no more entries than tokens.
        private var byOrigin: [[UInt8]: Int] = [:]

        func requireRoom(for clientNonce: [UInt8], from origin: [UInt8]?) throws(Refusal) {
            guard !used.contains(clientNonce) else { throw .repeated }
            guard used.count < Gate.tokenBound else { throw .crowded }
            guard let origin else { return }
            guard byOrigin[origin, default: 0] < Gate.tokenBoundPerOrigin else { throw .crowded }
        }

        mutating func enter(_ clientNonce: [UInt8], from origin: [UInt8]?) {
            used.insert(clientNonce)
            if let origin { byOrigin[origin, default: 0] += 1 }
        }
    }

    private struct Period {
        let nonce: [UInt8]
        /// The keys that its advertisements were sealed with.
        let keys: GenerationKeys
        /// When it stops to count; nil for the present one.
        var endsAt: Duration?
        var book = Book()
    }

    package let device: DeviceID
    /// The present period is the last.
    private var periods: [Period] = []
    private var steps: [UInt64: Book] = [:]
    /// The greatest step whose used tokens are forgotten.
    private var lastForgottenStep: UInt64?
    private let clockDelay: Duration
    private var clockBegins: Duration?

    package init(device: DeviceID, clockDelay: Duration = Self.clockDelay) {
        self.device = device
        self.clockDelay = clockDelay
    }

    /// Whether the present period has used up its tokens, and another should begin.
    package var isCrowded: Bool { (periods.last?.book.used.count ?? 0) >= Self.tokenBound }

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
        if clockBegins == nil { clockBegins = uptime + clockDelay }
        if let last = periods.indices.last { periods[last].endsAt = uptime + Self.periodGrace }
        periods.append(Period(nonce: nonce, keys: keys))
        if periods.count > Self.periodBound { periods.removeFirst() }
    }

    private enum Ground {
        /// The nonce of a period, by its place.
        case period(Int)
        case step(UInt64)
    }

    /// Judges the server name of a client, and remembers it as used. Computes at most seven tags, for any number of
    /// generations.
    ///
    /// - Parameters:
    ///   - origin: The bytes of the address that it came from; nil, the default, counts for none.
    ///   - uptime: The clock of ``beginPeriod(nonce:keys:uptime:)``.
    ///   - unixTime: Seconds since 1970, for clients that dialled without an advertisement.
    /// - Returns: The generation of keys that the token was made with.
    package mutating func admit(
        _ serverName: String?, from origin: [UInt8]? = nil, uptime: Duration, unixTime: UInt64
    ) throws(Refusal) -> UInt32 {
        let (clientNonce, ground, generation) = try judge(
            serverName, from: origin, uptime: uptime, unixTime: unixTime)
        switch ground {
        case .period(let index): periods[index].book.enter(clientNonce, from: origin)
        case .step(let step): steps[step, default: Book()].enter(clientNonce, from: origin)
        }
        return generation
    }

    /// Whether a server name would be admitted now. It is not remembered, and still has to be admitted.
    ///
    /// The parameters are those of ``admit(_:from:uptime:unixTime:)``.
    package mutating func wouldAdmit(
        _ serverName: String?, from origin: [UInt8]? = nil, uptime: Duration, unixTime: UInt64
    ) -> Bool {
        (try? judge(serverName, from: origin, uptime: uptime, unixTime: unixTime)) != nil
    }

    private mutating func judge(
        _ serverName: String?, from origin: [UInt8]?, uptime: Duration, unixTime: UInt64
    ) throws(Refusal) -> (clientNonce: [UInt8], Ground, generation: UInt32) {
        guard let serverName, let (clientNonce, tag) = Self.parse(serverName) else { throw .malformed }
        periods.removeAll { $0.endsAt.map { $0 <= uptime } ?? false }
        let step = unixTime / GateToken.stepSeconds
        let window = step - min(step, 1)...step + 1
        for step in steps.keys where !window.contains(step) {
            steps[step] = nil
            lastForgottenStep = max(lastForgottenStep ?? step, step)
        }

        // Nearly always all that counts is of one generation.
        var key: (id: GenerationID, tags: GateToken.TagKey)?
        func isTag(of message: [UInt8], _ keys: GenerationKeys) -> Bool {
            let tags = if let key, key.id == keys.id { key.tags } else { GateToken.TagKey(keys) }
            key = (keys.id, tags)
            return Self.areEqual(tags.tag(of: message + clientNonce), tag)
        }
        for index in periods.indices.reversed() {
            let period = periods[index]
            guard isTag(of: GateToken.message(to: device, gateNonce: period.nonce), period.keys) else { continue }
            try period.book.requireRoom(for: clientNonce, from: origin)
            return (clientNonce, .period(index), period.keys.generation)
        }
        guard let keys = periods.last?.keys else { throw .forged }
        for step in window where isTag(of: GateToken.message(to: device, step: step), keys) {
            let isForgotten = lastForgottenStep.map { step <= $0 } ?? false
            guard let clockBegins, uptime >= clockBegins, !isForgotten else { throw .forgotten }
            try steps[step]?.requireRoom(for: clientNonce, from: origin)
            return (clientNonce, .step(step), keys.generation)
        }
        throw .forged
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
