// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import BatonTLS

@Suite("Small blocks that OpenSSL gives back")
struct SmallBlocksTests {
    @Test("A block that was given back is the next one, for every size that it serves")
    func reused() {
        let blocks = SmallBlocks()
        for size in [SmallBlocks.size / 2 + 1, 40, SmallBlocks.size] {
            let first = blocks.allocate(size)
            blocks.free(first)
            #expect(blocks.count == 1)
            #expect(blocks.allocate(size) == first)
            #expect(blocks.count == 0)
            blocks.free(first)
        }
        // Other sizes neither use the cache nor fill it.
        for size in [1, SmallBlocks.size / 2, SmallBlocks.size * 2, 1 << 20] {
            let other = blocks.allocate(size)
            #expect(other != nil && blocks.count == 1)
            blocks.free(other)
            #expect(blocks.count == 1)
        }
    }

    @Test("No more are kept than the bound")
    func bounded() {
        let blocks = SmallBlocks()
        let taken = (0...SmallBlocks.bound).map { _ in blocks.allocate(SmallBlocks.size) }
        #expect(Set(taken).count == taken.count)
        for block in taken { blocks.free(block) }
        #expect(blocks.count == SmallBlocks.bound)
        let again = (0..<SmallBlocks.bound).map { _ in blocks.allocate(40) }
        let isEachTheSame = Set(again).isSubset(of: taken)
        #expect(isEachTheSame && blocks.count == 0)
        for block in again { blocks.free(block) }
    }

    @Test("Threads that take and give back at once never have the same block")
    func threads() async {
        let blocks = SmallBlocks()
        await withDiscardingTaskGroup { group in
            for number in 0..<4 {
                group.addTask {
                    for round in 0..<20_000 {
                        let mark = UInt64(number << 32 | round)
                        let (first, second) = (blocks.allocate(40), blocks.allocate(40))
                        for block in [first, second] {
                            block?.initializeMemory(as: UInt64.self, repeating: mark, count: 5)
                        }
                        for block in [first, second] {
                            #expect(block?.load(fromByteOffset: 32, as: UInt64.self) == mark)
                            blocks.free(block)
                        }
                    }
                }
            }
        }
        #expect((1...8).contains(blocks.count))
    }
}
