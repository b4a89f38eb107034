// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Memory that the kernel is asked to back with huge pages, 2 MiB each (madvise(2), `MADV_HUGEPAGE`).
///
/// Buffers for bulk data use it: with pages of 4 KiB, copying, encrypting and writing to a disk need 512 times as many
/// page table entries. It is a request. If the kernel grants no huge pages, the memory is ordinary memory.
///
/// The memory is freed with this object; do not use ``bytes`` afterwards.
package final class HugePageMemory: @unchecked Sendable {  // reason: the pointer is set once; its users share it out
    private static let hugePage = 2 << 20

    /// The memory, at a multiple of 2 MiB. It is zero at first, and not resident before something is written.
    package let bytes: UnsafeMutableRawBufferPointer

    /// Maps memory.
    ///
    /// - Parameter count: the number of bytes, more than 0, rounded up to pages. A rest of less than 2 MiB gets small
    ///   pages.
    package init(count: Int) {
        precondition(count > 0, "memory has at least one byte")
        let page = Int(getpagesize())
        let size = (count + page - 1) / page * page
        // The extra bytes allow alignment, and are unmapped at once.
        let reserved = size + Self.hugePage
        guard let start = mmap(nil, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
            start != MAP_FAILED
        else { preconditionFailure("no memory for \(count) bytes") }
        let lead = (Self.hugePage - Int(bitPattern: start) % Self.hugePage) % Self.hugePage
        if lead > 0 { munmap(start, lead) }
        munmap(start + lead + size, reserved - lead - size)
        madvise(start + lead, size, Int32(MADV_HUGEPAGE))
        bytes = UnsafeMutableRawBufferPointer(start: start + lead, count: size)
    }

    deinit {
        munmap(bytes.baseAddress, bytes.count)
    }
}
