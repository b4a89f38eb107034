// SPDX-License-Identifier: Apache-2.0

/// The bounds of a TLS session.
///
/// The worst-case memory of a session is ``bufferedInput`` + ``bufferedOutput`` + ``outputReserve`` + about 80 KiB of
/// OpenSSL itself (its read and write buffers, the handshake, the certificates).
package struct TLSLimits: Sendable, Hashable {
    /// Bytes of ciphertext that may wait to be decrypted: 288 KiB, one read of 256 KiB from a socket, and an
    /// incomplete record from the read before. At the limit `receive` takes nothing, so a fast peer fills the socket
    /// and not the memory.
    static let bufferedInput = 288 << 10

    /// Bytes of ciphertext that may wait for the network: 288 KiB, 17 whole records and some more. At the limit
    /// `write` takes nothing, so a peer that does not read stops the writer and fills no memory. Bytes that TLS itself
    /// sends (the handshake, a key update, an alert) may exceed it by at most 32 KiB.
    static let bufferedOutput = 288 << 10

    /// The bytes sent under one key. Default 64 GiB, each record counted as a full one of 16 KiB: 2^22 records. The
    /// bound of AES-GCM is 2^24.5 records (RFC 8446, section 5.5). Rounded up to whole records.
    var keyUpdateInterval: UInt64 = 64 << 30

    /// Handshake messages after the handshake, such as key updates and tickets, that may come without data. Default 32;
    /// each 16 KiB of data allows one more. Stops a peer that makes this side work at 27 bytes a message, which no
    /// limit above TLS would see.
    var postHandshakeMessages = 32

    /// Plaintext bytes of a full record (RFC 8446, section 5.1).
    static let recordPayload = 16384

    /// The largest record on the wire, as OpenSSL writes it: header 5, content type 1, tag 16; rounded up.
    static let maximumRecord = recordPayload + 64

    /// Space beyond ``bufferedOutput`` for bytes of TLS itself: a handshake flight, key updates, an alert.
    static let outputReserve = 32 << 10

    /// Makes the bounds.
    package init() {}
}
