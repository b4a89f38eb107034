// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// One BIO of our own type: what a session reads from and writes to instead of a socket.
///
/// OpenSSL's memory BIOs are unbounded and move bytes at every write; this one is bounded, reads straight out of the
/// bytes that the owner has just received from the network, and writes straight into those that it sends next, so that
/// most of them are never copied into a buffer. OpenSSL asks for the five bytes of a record's header and then for its
/// body; read-ahead, which would ask for both at once, gains nothing where asking costs no system call, and larger read
/// buffers of OpenSSL fall out of the cache.
final class MemoryBIO {
    /// Received and not yet decrypted.
    var input: CiphertextBuffer
    /// Encrypted and not yet sent.
    var output: CiphertextBuffer
    /// Bytes that the owner lends while it is inside a call, and that come after `input`.
    var lent = UnsafeRawBufferPointer(start: nil, count: 0)
    /// Room that the owner lends while it is inside a call, for what would otherwise be copied through `output`.
    var room = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    /// The network has ended: when the bytes are used up, reading is an end of file and not a "come again".
    var hasEnded = false

    /// Nothing more is read: the session has failed in the middle of a call.
    var isStopped = false

    /// What TLS wants to send is dropped: a stranger gets no byte.
    var isMuted = false

    /// The BIO; a session takes its reference over with `SSL_set_bio`.
    let pointer: OpaquePointer

    init(limits: TLSLimits) throws(TLSError) {
        guard let method = Self.method.pointer, let bio = BIO_new(method) else {
            throw ErrorQueue.libraryFailure("making a BIO")
        }
        input = CiphertextBuffer(limit: limits.bufferedInput)
        output = CiphertextBuffer(limit: limits.bufferedOutput + TLSLimits.outputReserve)
        pointer = bio
        // Unretained: the session owns both this object and the SSL that owns the BIO, and frees the SSL first.
        BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
        BIO_set_init(bio, 1)
    }

    /// How many bytes wait to be decrypted.
    var received: Int { input.count + lent.count }

    private func read(into target: UnsafeMutableRawBufferPointer) -> Int {
        let taken = input.take(into: target)
        let more = min(target.count - taken, lent.count)
        guard more > 0 else { return taken }
        UnsafeMutableRawBufferPointer(rebasing: target[taken...]).copyMemory(
            from: UnsafeRawBufferPointer(rebasing: lent.prefix(more)))
        lent = UnsafeRawBufferPointer(rebasing: lent.dropFirst(more))
        return taken + more
    }

    /// Takes bytes for the network: into the lent room, as long as nothing waits that came before.
    private func write(_ source: UnsafeRawBufferPointer) -> Bool {
        guard output.count == 0, source.count <= room.count else { return output.append(source) }
        room.copyMemory(from: source)
        room = UnsafeMutableRawBufferPointer(rebasing: room.dropFirst(source.count))
        return true
    }

    private static func owner(of bio: OpaquePointer?) -> MemoryBIO? {
        BIO_get_data(bio).map { Unmanaged<MemoryBIO>.fromOpaque($0).takeUnretainedValue() }
    }

    /// A BIO_METHOD, made once for the process.
    private struct Method: @unchecked Sendable {  // reason: never changed after it was made
        let pointer: OpaquePointer?
    }

    private static let method: Method = {
        guard let method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "baton") else {
            return Method(pointer: nil)
        }
        BIO_meth_set_read(method) { bio, target, count in
            shim_BIO_clear_retry_flags(bio)
            guard let owner = owner(of: bio), let target, count > 0, !owner.isStopped else { return 0 }
            let taken = owner.read(into: UnsafeMutableRawBufferPointer(start: target, count: Int(count)))
            if taken > 0 { return Int32(taken) }
            if owner.hasEnded { return 0 }
            shim_BIO_set_retry_read(bio)
            return -1
        }
        BIO_meth_set_write(method) { bio, source, count in
            shim_BIO_clear_retry_flags(bio)
            guard let owner = owner(of: bio), let source, count > 0 else { return 0 }
            guard !owner.isMuted else { return count }
            // Never full: the session writes no more than fits, and keeps a reserve for what TLS sends of itself.
            // Were it ever, this is a failure of the session, not a partial write that would have to be repeated.
            return owner.write(UnsafeRawBufferPointer(start: source, count: Int(count))) ? count : -1
        }
        BIO_meth_set_ctrl(method) { bio, command, _, _ in
            switch command {
            case BIO_CTRL_FLUSH: 1
            case BIO_CTRL_EOF: owner(of: bio).map { $0.hasEnded && $0.received == 0 ? 1 : 0 } ?? 1
            default: 0
            }
        }
        return Method(pointer: method)
    }()
}
