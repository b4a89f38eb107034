// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// The inviter's side of an invitation: whom it asks about, and how often it may fail.
///
/// It has no clock and no socket. Each method takes one event and returns what is to be done.
package struct Invitation: Sendable {
    /// How long an invitation is open. Ten minutes.
    package static let lifetime = Duration.seconds(600)

    /// The number of failures that end an invitation: 3. Each wrong entry is one. So is each attempt that ends after
    /// the inviter has sent its key, and before any entry: from then on an attacker knows which digits it has.
    package static let maximumFailures = 3

    /// News for the user of the inviting device.
    package enum Event: Sendable, Equatable {
        /// A joiner shows six digits: they are to be entered, or the joiner turned away.
        case asked
        /// These are not its digits: enter others.
        case wrong(left: Int)
        /// The joiner is gone or broke the rules. Another one may come.
        case lost(left: Int)
        /// The digits were right: this device may have the account.
        case right(DeviceID)
        /// The device has stored the account. The last event.
        case joined(name: String, DeviceID)
        /// The device got the account and did not say that it stored it. The last event.
        case unconfirmed(DeviceID)
        /// The invitation ended without a new device. The last event.
        case over(PairingEnd)
        /// The account could not be handed over. The last event.
        case failed(String)
    }

    private enum State {
        case waiting
        case exchanging(PairingInviter)
        case asking(deviceKey: [UInt8], PairingKeys, hasEntry: Bool)
        case handedOver(deviceKey: [UInt8], PairingKeys)
        case over
    }

    private var state = State.waiting
    private var failures = 0

    package init() {}

    /// Whether a joiner may begin; another one is busy otherwise.
    package var isWaiting: Bool {
        if case .waiting = state { true } else { false }
    }

    /// The device that gets the account, and the keys for that; nil before the right digits, and at the end.
    package var recipient: (deviceKey: [UInt8], keys: PairingKeys)? {
        if case .handedOver(let deviceKey, let keys) = state { (deviceKey, keys) } else { nil }
    }

    /// Takes the first message of a joiner.
    ///
    /// - Returns: the answer.
    /// - Throws: `malformed`, also if nobody may begin; see ``isWaiting``.
    package mutating func begin(_ commit: PairingMessage) throws(PairingError) -> PairingMessage {
        guard isWaiting else { throw .malformed }
        let inviter = try PairingInviter(commit: commit)
        state = .exchanging(inviter)
        return inviter.key
    }

    /// Takes a further message of the joiner.
    ///
    /// - Throws: `malformed` for a message that cannot come now or is wrong. The caller then ends the connection and
    ///   calls ``lose()``.
    package mutating func receive(_ message: PairingMessage) throws(PairingError) -> Event? {
        switch state {
        case .exchanging(let inviter):
            let (deviceKey, keys) = try inviter.receiveOpen(message)
            state = .asking(deviceKey: deviceKey, keys, hasEntry: false)
            return .asked
        case .handedOver(let deviceKey, let keys):
            guard message.kind == .done, let bytes = keys.open(message.body, .done),
                let text = String(validating: bytes, as: UTF8.self), let name = try? DeviceName.validated(text)
            else { throw .malformed }
            return end(.joined(name: name, DeviceID(ed25519PublicKey: deviceKey)))
        case .waiting, .asking: throw .malformed
        case .over: return nil
        }
    }

    /// Takes the digits that the user typed. They count for nothing while nobody is asked about.
    package mutating func enter(_ digits: String) -> Event? {
        guard case .asking(let deviceKey, let keys, _) = state else { return nil }
        if digits == keys.digits {
            state = .handedOver(deviceKey: deviceKey, keys)
            return .right(DeviceID(ed25519PublicKey: deviceKey))
        }
        state = .asking(deviceKey: deviceKey, keys, hasEntry: true)
        return fail() ?? .wrong(left: Self.maximumFailures - failures)
    }

    /// The joiner is gone, broke the rules, was too slow, or was turned away by the user.
    package mutating func lose() -> Event? {
        switch state {
        case .waiting, .over: return nil
        case .handedOver(let deviceKey, _): return end(.unconfirmed(DeviceID(ed25519PublicKey: deviceKey)))
        case .asking(_, _, hasEntry: true): state = .waiting
        case .exchanging, .asking(_, _, hasEntry: false):
            state = .waiting
            if let end = fail() { return end }
        }
        return .lost(left: Self.maximumFailures - failures)
    }

    /// Counts a failure. The last one ends the invitation.
    private mutating func fail() -> Event? {
        failures += 1
        return failures < Self.maximumFailures ? nil : end(.over(.digits))
    }

    private mutating func end(_ event: Event) -> Event {
        state = .over
        return event
    }

    /// The time is over, or the user has ended the invitation.
    package mutating func stop(_ reason: PairingEnd) -> Event? {
        switch state {
        case .over: nil
        case .handedOver: lose()
        case .waiting, .exchanging, .asking: end(.over(reason))
        }
    }

    /// The six digits of a line that a user typed; nil for anything else.
    package static func digits(in text: String) -> String? {
        let digits = text.filter { $0 != " " }
        guard digits.utf8.count == 6, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return digits
    }
}

/// What an invitation announces on the network: where the inviter listens, and no name of a host, a user or an account.
///
/// The article *Pairing* of `BatonProtocol` has its TXT record.
package struct InvitationRecord: Sendable, Equatable {
    package static let serviceType = "_baton-pair._tcp"

    private static let version = Array("v=1".utf8)
    private static let key = Array("a=".utf8)

    /// The TCP port: 1024 or above.
    package let port: UInt16
    /// The addresses, the preferred one first: at most ``AdvertisementContent/maximumAddressCount``.
    package let addresses: [NetworkAddress]

    /// A record of the addresses that fit: see ``AdvertisementContent/fitting(_:)``.
    package init(port: UInt16, addresses: [NetworkAddress]) {
        self.port = port
        self.addresses = AdvertisementContent.fitting(addresses)
    }

    /// Reads the strings of a record; nil for another version, and for strings that no inviter writes. Strings behind
    /// the second are left for later versions.
    package init?(decoding strings: [[UInt8]]) {
        guard strings.count >= 2, strings[0] == Self.version, strings[1].starts(with: Self.key) else { return nil }
        var reader = ByteReader(strings[1].dropFirst(Self.key.count))
        guard let port = try? reader.integer(UInt16.self),
            let addresses = try? AdvertisementCodec.decodeAddresses(&reader), reader.rest.isEmpty
        else { return nil }
        self.init(port: port, addresses: addresses)
        guard port >= Advertisement.minimumPort, !addresses.isEmpty else { return nil }
    }

    package var strings: [[UInt8]] {
        var endpoints = Self.key
        endpoints.append(bigEndian: port)
        endpoints.append(addresses)
        return [Self.version, endpoints]
    }

    /// The characters by which users tell invitations apart: the first four of the instance's name.
    package static func tag(of instance: String) -> String { String(instance.prefix(4)) }
}
