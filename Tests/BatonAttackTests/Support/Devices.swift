// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonTestSupport
import COpenSSL

@testable import BatonTLS

extension TestAccount.Device {
    /// A TLS context of the device.
    func context(
        gate: TLSContext.Gate? = nil, refuses: @escaping @Sendable (String) -> Bool = { _ in false }
    ) throws -> TLSContext {
        try tlsMaterial.context(gate: gate, refuses: refuses)
    }
}

extension TLSMaterial {
    /// A TLS context of whoever has it; as that of a device.
    func context(
        gate: TLSContext.Gate? = nil, refuses: @escaping @Sendable (String) -> Bool = { _ in false }
    ) throws -> TLSContext {
        try TLSContext(
            identity: certificate.withUnsafeBytes { certificate in
                try authorityCertificate.withUnsafeBytes { authority in
                    try privateKey.withUnsafeBytes { key in
                        try TLSIdentity(certificate: certificate, privateKey: key, accountCA: authority)
                    }
                }
            }, gate: gate, refuses: refuses)
    }

    /// A TLS context of an attacker who has it, and believes any certificate.
    func credulousContext() throws -> TLSContext {
        let context = try context()
        SSL_CTX_set_verify(context.pointer, SSL_VERIFY_PEER, nil)
        SSL_CTX_set_cert_verify_callback(
            context.pointer,
            { store, _ in
                X509_STORE_CTX_set_error(store, X509_V_OK)
                return 1
            }, nil)
        return context
    }
}

/// One TLS session in memory, as the hostile wire between two of them sees it.
extension TLSSession {
    /// Lets an attacker, in whose context no certificate is verified, go on after the handshake.
    func believePeer() { verifiedPeer = "anybody" }

    /// Goes as far as what came allows; what it says is for the wire, also when it fails.
    func speak() -> [UInt8] {
        _ = try? handshake()
        return [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
            count = nextOutput(into: UnsafeMutableRawBufferPointer(buffer))
        }
    }

    func hear(_ bytes: [UInt8]) {
        try? bytes.withUnsafeBytes { try receive($0) }
    }

    /// The peer's bytes so far; nil when the session has failed.
    func text() -> [UInt8]? {
        [UInt8](unsafeUninitializedCapacity: 1 << 14) { buffer, count in
            if case .bytes(let read)? = try? self.read(into: UnsafeMutableRawBufferPointer(buffer)) { count = read }
        }
    }

    /// Whether it takes a text for its peer now.
    func say(_ text: String) -> Bool {
        (try? Array(text.utf8).withUnsafeBytes { try write($0) }) != nil
    }
}

/// Carries bytes between two sessions until both are silent.
func converse(_ one: TLSSession, _ other: TLSSession) {
    while true {
        let there = one.speak()
        other.hear(there)
        let back = other.speak()
        one.hear(back)
        if there.isEmpty, back.isEmpty { return }
    }
}

extension [UInt8] {
    /// Whether another sequence of bytes stands somewhere in this one.
    func holds(_ part: some Collection<UInt8>) -> Bool {
        guard let first = part.first, count >= part.count else { return false }
        var index = startIndex
        while index <= endIndex - part.count {
            if self[index] == first, self[index..<(index + part.count)].elementsEqual(part) { return true }
            index += 1
        }
        return false
    }
}
