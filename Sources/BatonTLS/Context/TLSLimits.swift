// SPDX-License-Identifier: Apache-2.0

/// The bounds of a TLS session.
///
/// The worst-case memory of one session is ``bufferedInput`` + ``bufferedOutput`` + about 80 KiB that OpenSSL itself
/// holds (its read and write buffers, the handshake, the certificates).
package struct TLSLimits: Sendable, Hashable {
    /// Bytes of ciphertext that may wait to be decrypted. Default 288 KiB: one read of 256 KiB from a socket, and the
    /// incomplete record that was left of the one before. At the limit `receive` takes nothing, so a peer that sends
    /// faster than the owner reads fills the socket and not the memory.
    package var bufferedInput: Int

    /// Bytes of ciphertext that may wait for the network. Default 288 KiB: 16 whole records and some. At the limit
    /// `write` takes nothing, so a peer that does not read stops the writer and not the memory. The few bytes that TLS
    /// itself sends (the handshake, a key update, an alert) may pass it by at most 32 KiB.
    package var bufferedOutput: Int

    /// After how many bytes sent the sending key is replaced. Default 64 GiB, each record counted as a full one of 16
    /// KiB: 2^22 records, where AES-GCM's bound is 2^24.5 (RFC 8446, section 5.5). Rounded up to whole records.
    var keyUpdateInterval: UInt64 = 64 << 30

    /// Messages of the handshake that may come behind it, without data: key updates, tickets. Default 32; each record
    /// of data gives one back. A peer that sends nothing else would have this one work, at 27 bytes a message, and no
    /// limit of what is above TLS would see it.
    var lateMessages = 32

    /// The smallest value of either bound: two whole records.
    package static let minimumBuffer = 2 * maximumRecord

    /// Plaintext bytes of a full record (RFC 8446, section 5.1).
    static let recordPayload = 16384

    /// The most that one record takes on the wire, as OpenSSL writes them: header 5, content type 1, tag 16; rounded
    /// up.
    static let maximumRecord = recordPayload + 64

    /// Room beyond ``bufferedOutput`` for what TLS sends of itself: a handshake flight, key updates, an alert.
    static let outputReserve = 32 << 10

    /// Makes the bounds; a value below ``minimumBuffer`` is raised to it.
    package init(bufferedInput: Int = 288 << 10, bufferedOutput: Int = 288 << 10) {
        self.bufferedInput = max(bufferedInput, Self.minimumBuffer)
        self.bufferedOutput = max(bufferedOutput, Self.minimumBuffer)
    }
}
