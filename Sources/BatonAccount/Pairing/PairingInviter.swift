// SPDX-License-Identifier: Apache-2.0

/// The inviter's part of the exchange with one joiner.
package struct PairingInviter: Sendable {
    private let own: PairingContribution
    private let commitment: [UInt8]

    /// Begins an exchange. The key and the nonce are drawn now, after the joiner has committed to its own.
    package init(commit: PairingMessage) throws(PairingError) {
        try self.init(commit: commit, PairingContribution())
    }

    init(commit: PairingMessage, _ own: PairingContribution) throws(PairingError) {
        guard case .commit(let commitment) = commit else { throw .malformed }
        self.commitment = commitment
        self.own = own
    }

    /// The answer to the commitment.
    package var key: PairingMessage { .key(publicKey: own.publicKey, nonce: own.nonce) }

    /// Takes the opening of the commitment.
    ///
    /// - Returns: the Ed25519 public key of the new device, 32 bytes, and the keys.
    package func receiveOpen(_ message: PairingMessage) throws(PairingError) -> (deviceKey: [UInt8], keys: PairingKeys)
    {
        guard case .open(let publicKey, let nonce, let sealed) = message,
            PairingContribution.commitment(publicKey: publicKey, nonce: nonce) == commitment
        else { throw .malformed }
        let keys = try own.keys(
            with: publicKey,
            transcript: PairingContribution.transcript(
                commitment: commitment, inviter: (own.publicKey, own.nonce), joiner: (publicKey, nonce)))
        guard let deviceKey = keys.open(sealed, .open), deviceKey.count == 32 else { throw .malformed }
        return (deviceKey, keys)
    }
}
