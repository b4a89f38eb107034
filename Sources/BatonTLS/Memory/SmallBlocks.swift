// SPDX-License-Identifier: Apache-2.0

import CLinux
import COpenSSL
import Glibc

/// A cache of small blocks of memory that OpenSSL has freed.
///
/// OpenSSL 3.0 allocates three blocks of 40 bytes for each record that it writes, and one for each that it reads: 250
/// calls for 1 MiB of a document. With this cache, a connection in its steady state allocates none.
package final class SmallBlocks: @unchecked Sendable {  // reason: `first` and `count` are reached under the mutex alone
    /// The size of cached blocks, in bytes. The heap serves requests for more, or for half as much.
    static let size = 64
    /// The usable sizes of a block of ``size`` bytes, which the heap rounds up. Other blocks with the same usable size
    /// are cached as well.
    private static let usableSizes = size..<size + 32
    /// The most cached blocks, some 16 KiB. More are freed at once only when connections begin or end.
    static let bound = 256

    private static let ofLibrary = SmallBlocks()

    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    /// The first cached block. Each begins with the address of the next one.
    private var first: UnsafeMutableRawPointer?
    /// The number of cached blocks.
    private(set) var count = 0

    init() {
        pthread_mutex_init(mutex, nil)
    }

    deinit {
        while let block = popKept() { Glibc.free(block) }
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Installs the cache between OpenSSL and the heap, for good (CRYPTO_set_mem_functions(3)).
    ///
    /// - Returns: false, with no effect, if OpenSSL has allocated memory before.
    @discardableResult
    package static func serveLibrary() -> Bool {
        CRYPTO_set_mem_functions(
            { size, _, _ in SmallBlocks.ofLibrary.allocate(size) },
            { block, size, _, _ in realloc(block, size) },
            { block, _, _ in SmallBlocks.ofLibrary.free(block) }) == 1
    }

    /// Allocates like malloc(3).
    func allocate(_ size: Int) -> UnsafeMutableRawPointer? {
        guard size > Self.size / 2, size <= Self.size else { return malloc(size) }
        return popKept() ?? malloc(Self.size)
    }

    /// Frees like free(3).
    func free(_ block: UnsafeMutableRawPointer?) {
        guard let block else { return }
        guard Self.usableSizes.contains(baton_usable_size(block)), keep(block) else { return Glibc.free(block) }
    }

    private func popKept() -> UnsafeMutableRawPointer? {
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
