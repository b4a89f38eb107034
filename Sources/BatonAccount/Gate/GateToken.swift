// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol
import Crypto
import FoundationEssentials

/// The token with which a dialling device shows, in the very first packet, that it belongs to the account.
///
/// It travels as the TLS server name. The article *Gate* of `BatonProtocol` has its form.
package enum GateToken {
    package static let nonceCount = 16

    /// How many random bytes the client adds, so that each token is good once.
    static let clientNonceCount = 16
    static let tagCount = 16
    package static let labelCount = 52
    package static let suffix = ".baton.invalid"

    /// A server name for a device whose advertisement was opened.
    ///
    /// - Parameters:
    ///   - keys: The generation that opened the advertisement.
    ///   - server: The device that is dialled.
    ///   - gateNonce: The 16 bytes from its advertisement.
    package static func serverName(
        keys: GenerationKeys, server: DeviceID, gateNonce: [UInt8], clientNonce: [UInt8]? = nil
    ) -> String {
        let clientNonce = clientNonce ?? randomBytes(clientNonceCount)
        return Base32.encode(
            clientNonce + tag(keys, to: server, gateNonce: gateNonce, clientNonce: clientNonce)) + suffix
    }

    static func tag(
        _ keys: GenerationKeys, to server: DeviceID, gateNonce: [UInt8], clientNonce: [UInt8]
    ) -> [UInt8] {
        let message = Array("gate/1".utf8) + server.bytes + gateNonce + clientNonce
        return keys.gate.withUnsafeBytes {
            Array(HMAC<SHA256>.authenticationCode(for: message, using: SymmetricKey(data: $0)).prefix(tagCount))
        }
    }
}
