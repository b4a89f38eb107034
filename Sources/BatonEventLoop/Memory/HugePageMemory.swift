// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Memory that the kernel is asked to back with huge pages, 2 MiB each (madvise(2), `MADV_HUGEPAGE`).
///
/// For what bytes flow through all the time: with pages of 4 KiB, 512 entries have to be looked up for as much, by
/// whoever copies, encrypts or hands them to a disk. It is a request: where the kernel grants none, the memory is as
/// any other.
///
/// Belongs to whoever holds it; nobody may use ``bytes`` after that.
package final class HugePageMemory: @unchecked Sendable {  // reason: the pointer is set once; its users share it out
    private static let hugePage = 2 << 20

    /// Begins at a multiple of 2 MiB. Zero at first, and not resident before something is written.
    package let bytes: UnsafeMutableRawBufferPointer

    /// - Parameter count: how many bytes, more than 0. Rounded up to pages; what is beyond the last 2 MiB gets small
    ///   ones.
    package init(count: Int) {
        precondition(count > 0, "memory has at least one byte")
        let page = Int(getpagesize())
        let size = (count + page - 1) / page * page
        // As much more as there may be before the first multiple. It is given back at once.
        let room = size + Self.hugePage
        guard let start = mmap(nil, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
            start != MAP_FAILED
        else { preconditionFailure("no memory for \(count) bytes") }
        let lead = (Self.hugePage - Int(bitPattern: start) % Self.hugePage) % Self.hugePage
        if lead > 0 { munmap(start, lead) }
        munmap(start + lead + size, room - lead - size)
        madvise(start + lead, size, Int32(MADV_HUGEPAGE))
        bytes = UnsafeMutableRawBufferPointer(start: start + lead, count: size)
    }

    deinit {
        munmap(bytes.baseAddress, bytes.count)
    }
}
