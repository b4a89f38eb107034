// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// A BIO of Baton's own type, from which a session reads and to which it writes instead of a socket.
///
/// OpenSSL's memory BIOs are unbounded and move bytes at every write. This one is bounded. It reads straight from the
/// received bytes and writes straight into the bytes to send, so most bytes are never copied into a buffer.
///
/// OpenSSL asks for the five bytes of a record's header and then for its body. Read-ahead would ask for both at once,
/// which gains nothing without a system call. Larger read buffers of OpenSSL do not fit into the cache.
final class MemoryBIO {
    /// Received and not yet decrypted.
    var input = CiphertextBuffer(limit: TLSLimits.bufferedInput)
    /// Encrypted and not yet sent.
    var output = CiphertextBuffer(limit: TLSLimits.bufferedOutput + TLSLimits.outputReserve)
    /// Bytes that the owner lends during a call. They follow `input`.
    var lentInput = UnsafeRawBufferPointer(start: nil, count: 0)
    /// Space that the owner lends during a call, for bytes that need not be copied through `output`.
    var lentOutput = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    /// Whether the network has ended. After the last byte, reading then reports the end of file and not a retry.
    var hasEnded = false

    /// Whether the session has failed during a call, so that nothing more is read.
    var isStopped = false

    /// Whether output of TLS is dropped, because a stranger gets no byte.
    var isMuted = false

    /// The BIO. A session takes its reference with `SSL_set_bio`.
    let pointer: OpaquePointer

    init() throws(TLSError) {
        guard let method = Self.method, let bio = BIO_new(method) else {
            throw ErrorQueue.libraryFailure("making a BIO")
        }
        pointer = bio
        // Unretained: the session owns this object and the SSL, which owns the BIO, and frees the SSL first.
        BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
        BIO_set_init(bio, 1)
    }

    /// The number of bytes that wait to be decrypted.
    var received: Int { input.count + lentInput.count }

    private func read(into target: UnsafeMutableRawBufferPointer) -> Int {
        let taken = input.read(into: target)
        let more = min(target.count - taken, lentInput.count)
        guard more > 0 else { return taken }
        UnsafeMutableRawBufferPointer(rebasing: target[taken...]).copyMemory(
            from: UnsafeRawBufferPointer(rebasing: lentInput.prefix(more)))
        lentInput = UnsafeRawBufferPointer(rebasing: lentInput.dropFirst(more))
        return taken + more
    }

    /// Stores bytes for the network: in the lent space, unless earlier bytes wait.
    private func write(_ source: UnsafeRawBufferPointer) -> Bool {
        guard output.count == 0, source.count <= lentOutput.count else { return output.append(source) }
        lentOutput.copyMemory(from: source)
        lentOutput = UnsafeMutableRawBufferPointer(rebasing: lentOutput.dropFirst(source.count))
        return true
    }

    private static func owner(of bio: OpaquePointer?) -> MemoryBIO? {
        BIO_get_data(bio).map { Unmanaged<MemoryBIO>.fromOpaque($0).takeUnretainedValue() }
    }

    /// A BIO_METHOD, made once for the process.
    nonisolated(unsafe) private static let method: OpaquePointer? = {  // reason: never changed after it was made
        guard let method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "baton") else { return nil }
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
            // The buffer is never full: the session writes only what fits, and there is a reserve for bytes of TLS
            // itself. If it ever were, the session would fail; a partial write is not repeated.
            return owner.write(UnsafeRawBufferPointer(start: source, count: Int(count))) ? count : -1
        }
        BIO_meth_set_ctrl(method) { bio, command, _, _ in
            switch command {
            case BIO_CTRL_FLUSH: 1
            case BIO_CTRL_EOF: owner(of: bio).map { $0.hasEnded && $0.received == 0 ? 1 : 0 } ?? 1
            default: 0
            }
        }
        return method
    }()
}
