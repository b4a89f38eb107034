// SPDX-License-Identifier: Apache-2.0

import CLinux
import COpenSSL
import Glibc

/// Small blocks of memory that OpenSSL has given back, kept for when it asks again.
///
/// OpenSSL 3.0 takes three blocks of 40 bytes from the heap for each record that it writes, and one for each that it
/// reads: 250 calls for 1 MiB of a document. With this, a connection in its steady state takes none.
package final class SmallBlocks: @unchecked Sendable {  // reason: `first` and `count` are reached under the mutex alone
    /// Bytes of each block that is kept; what asks for more, or for half as many, is served by the heap.
    static let size = 64
    /// For how many bytes a block has room that was taken for ``size``: the heap rounds up, and leaves no rest that is
    /// too small to be a block. Others with as much room are as good.
    private static let room = size..<size + 32
    /// Blocks that are kept at the most, some 16 KiB of them. More of them at once mean that connections come or go.
    static let bound = 256

    private static let ofLibrary = SmallBlocks()

    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    /// Each block that is kept begins with the address of the next one.
    private var first: UnsafeMutableRawPointer?
    /// How many are kept.
    private(set) var count = 0

    init() {
        pthread_mutex_init(mutex, nil)
    }

    deinit {
        while let block = takeKept() { Glibc.free(block) }
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Puts this between OpenSSL and the heap, for good (CRYPTO_set_mem_functions(3)).
    ///
    /// - Returns: false where OpenSSL has taken memory before; then it goes on as it did.
    @discardableResult
    package static func serveLibrary() -> Bool {
        CRYPTO_set_mem_functions(
            { size, _, _ in SmallBlocks.ofLibrary.allocate(size) },
            { block, size, _, _ in SmallBlocks.ofLibrary.resize(block, to: size) },
            { block, _, _ in SmallBlocks.ofLibrary.free(block) }) == 1
    }

    /// As malloc(3); nil also for no bytes.
    func allocate(_ size: Int) -> UnsafeMutableRawPointer? {
        guard size > 0 else { return nil }
        guard size > Self.size / 2, size <= Self.size else { return malloc(size) }
        return takeKept() ?? malloc(Self.size)
    }

    /// As realloc(3); no bytes give the block back.
    func resize(_ block: UnsafeMutableRawPointer?, to size: Int) -> UnsafeMutableRawPointer? {
        guard let block else { return allocate(size) }
        guard size > 0 else {
            free(block)
            return nil
        }
        return realloc(block, size)
    }

    /// As free(3).
    func free(_ block: UnsafeMutableRawPointer?) {
        guard let block else { return }
        guard Self.room.contains(baton_usable_size(block)), keep(block) else { return Glibc.free(block) }
    }

    private func takeKept() -> UnsafeMutableRawPointer? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard let block = first else { return nil }
        first = block.load(as: UnsafeMutableRawPointer?.self)
        count -= 1
        return block
    }

    private func keep(_ block: UnsafeMutableRawPointer) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard count < Self.bound else { return false }
        block.storeBytes(of: first, as: UnsafeMutableRawPointer?.self)
        first = block
        count += 1
        return true
    }
}
