// SPDX-License-Identifier: Apache-2.0

/// The joiner's part of the exchange.
package struct PairingJoiner: Sendable {
    private let own: PairingContribution
    private let deviceKey: [UInt8]

    /// - Parameter deviceKey: the Ed25519 public key of the new device, 32 bytes.
    package init(deviceKey: [UInt8]) {
        self.init(deviceKey: deviceKey, PairingContribution())
    }

    init(deviceKey: [UInt8], _ own: PairingContribution) {
        self.deviceKey = deviceKey
        self.own = own
    }

    /// The first message.
    package var commit: PairingMessage { .commit(commitment) }

    private var commitment: [UInt8] { PairingContribution.commitment(publicKey: own.publicKey, nonce: own.nonce) }

    /// Takes the inviter's answer.
    ///
    /// - Returns: the opening of the commitment, and the keys. It is the first moment at which anybody can know the
    ///   digits.
    package func receiveKey(_ message: PairingMessage) throws(PairingError) -> (open: PairingMessage, keys: PairingKeys)
    {
        guard case .key(let publicKey, let nonce) = message else { throw .malformed }
        let keys = try own.keys(
            with: publicKey,
            transcript: PairingContribution.transcript(
                commitment: commitment, inviter: (publicKey, nonce), joiner: (own.publicKey, own.nonce)))
        guard let sealed = try? keys.seal(deviceKey, .open) else { throw .malformed }
        return (.open(publicKey: own.publicKey, nonce: own.nonce, sealedDeviceKey: sealed), keys)
    }
}
