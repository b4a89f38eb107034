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
        let tag = TagKey(keys).tag(to: server, gateNonce: gateNonce, clientNonce: clientNonce)
        return Base32.encode(clientNonce + tag) + suffix
    }

    /// `K_gate` of a generation, set up for any number of tags: that costs more than a tag does.
    ///
    /// To be kept for one judgement and no longer: it is as good as the key, outside of ``SecretBytes``. swift-crypto
    /// wipes it at its end.
    struct TagKey {
        private let code: HMAC<SHA256>

        init(_ keys: GenerationKeys) {
            code = keys.gate.withUnsafeBytes { HMAC(key: SymmetricKey(data: $0)) }
        }

        func tag(to server: DeviceID, gateNonce: [UInt8], clientNonce: [UInt8]) -> [UInt8] {
            var code = code
            code.update(data: Array("gate/1".utf8) + server.bytes + gateNonce + clientNonce)
            return code.finalize().withUnsafeBytes { Array(UnsafeRawBufferPointer(rebasing: $0[..<tagCount])) }
        }
    }
}
