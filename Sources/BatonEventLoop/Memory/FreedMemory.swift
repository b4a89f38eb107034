// SPDX-License-Identifier: Apache-2.0

import CLinux

/// What becomes of memory that is not used any more.
package enum FreedMemory {
    /// Blocks of this size and more are mapped apart, and go back to the system when they are freed: 128 KiB, as glibc
    /// has it at first.
    private static let leastMapped: Int32 = 128 << 10

    /// Keeps the resident memory of this process near what it uses. Once is enough, and for good.
    ///
    /// Left to itself, glibc raises the size from which it maps a block apart to that of the largest one that was
    /// freed, up to 32 MiB (mallopt(3), `M_MMAP_THRESHOLD`). Blocks below it come from the heaps of its threads, which
    /// keep what was freed as long as something lives above it: after eight folders of 10,000 files, one after the
    /// other, 48 MiB of a node's heaps were resident, and 1.4 MiB of them in use. With the size fixed it is 5 MiB.
    package static func returnToSystem() {
        baton_map_blocks_from(leastMapped)
    }
}
