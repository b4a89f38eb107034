// SPDX-License-Identifier: Apache-2.0

import COpenSSL

@testable import BatonTLS

/// What only tests ask a session.
extension TLSSession {
    /// The number of bytes that ``receive(_:)`` takes now, up to ``TLSLimits/bufferedInput``.
    var receivableBytes: Int { bio.input.freeSpace }

    /// The number of bytes of ciphertext that wait to be sent.
    var pendingOutput: Int { bio.output.count }

    /// The peer's certificate in DER. Nil until the handshake is complete.
    var peerCertificate: [UInt8]? {
        guard isComplete, let certificate = shim_SSL_peer_certificate(pointer) else { return nil }
        return Certificate(retaining: certificate).der
    }

    /// The negotiated version, by OpenSSL's name: "TLSv1.3".
    var negotiatedVersion: String {
        String(cString: SSL_get_version(pointer))
    }

    /// The negotiated cipher suite, by its name in RFC 8446; nil before.
    var negotiatedCipher: String? {
        SSL_get_current_cipher(pointer).flatMap { SSL_CIPHER_get_name($0) }.map { String(cString: $0) }
    }

    /// The negotiated key exchange, by its name in IANA's registry, but in OpenSSL's case; nil until the handshake is
    /// complete.
    var negotiatedGroup: String? {
        // Before that, OpenSSL 3.0 reads it from a session that does not exist yet.
        guard isComplete else { return nil }
        // SSL_get_negotiated_group is a macro over this; 0 is none.
        let group = SSL_ctrl(pointer, SSL_CTRL_GET_NEGOTIATED_GROUP, 0, nil)
        guard group != 0 else { return nil }
        return SSL_group_to_name(pointer, Int32(truncatingIfNeeded: group)).map { String(cString: $0) }
    }
}
