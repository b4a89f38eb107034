// SPDX-License-Identifier: Apache-2.0

package import BatonAccount
import BatonMessages
import BatonTLS
import BatonTransport
import FoundationEssentials

/// Wraps the keys of a revocation list on their way (a key-encryption key in the words of RFC 3394).
///
/// TLS and the local socket keep others from them anyway. It is for the buffers of messages, streams, TLS and the
/// kernel that they go through: none is wiped, so none may hold them in the clear.
package struct KeyEncryptionKey: Sendable {
    private let key: SecretBytes

    /// Between programs of one device.
    package init(localTo identity: DeviceIdentity) {
        key = identity.localWrappingKey
    }

    /// A key of ``KeyWrap/keySize`` bytes that two devices share.
    init(_ key: SecretBytes) {
        self.key = key
    }

    /// Wraps the keys of a generation.
    ///
    /// - Throws: ``HandoffError`` with `internal`, when the library fails.
    func wrap(_ keys: SecretBytes) throws(HandoffError) -> [UInt8] {
        var wrapped = [UInt8](repeating: 0, count: keys.count + KeyWrap.overhead)
        do {
            try wrapped.withUnsafeMutableBytes { target in
                try keys.withUnsafeBytes { keys in
                    try key.withUnsafeBytes { try KeyWrap.wrap(keys, with: $0, into: target) }
                }
            }
        } catch {
            throw HandoffError(.internal, "\(error)")
        }
        return wrapped
    }

    /// Unwraps keys; nil where they were wrapped with another key, or changed on the way.
    func unwrap(_ wrapped: Data) -> SecretBytes? {
        try? SecretBytes(count: max(0, wrapped.count - KeyWrap.overhead)) { target in
            try wrapped.withUnsafeBytes { wrapped in
                try key.withUnsafeBytes { try KeyWrap.unwrap(wrapped, with: $0, into: target) }
            }
        }
    }
}

extension Connection {
    /// Between the two devices of this connection (RFC 8446, section 7.5).
    ///
    /// - Throws: ``HandoffError``: what became of the connection.
    var keyEncryptionKey: KeyEncryptionKey {
        get throws(HandoffError) {
            do {
                return KeyEncryptionKey(
                    try SecretBytes(count: KeyWrap.keySize) { target throws(TransportError) in
                        try exportKeyingMaterial("EXPORTER-baton-generation-keys", into: target)
                    })
            } catch {
                throw HandoffError(error)
            }
        }
    }
}
