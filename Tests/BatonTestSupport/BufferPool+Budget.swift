// SPDX-License-Identifier: Apache-2.0

package import BatonDocuments
import BatonEventLoop

extension BufferPool {
    /// A pool with a budget of its own, of at most `budget / bufferCapacity` buffers and at least one.
    package convenience init(
        budget: Int = 24 << 20, bufferCapacity: Int = ChunkRecord.capacity, waiterLimit: Int = defaultWaiterLimit
    ) {
        let bytes = max(budget, bufferCapacity)
        self.init(
            part: ByteBudget(bytes: bytes).part(reserved: bytes, ceiling: bytes), bufferCapacity: bufferCapacity,
            waiterLimit: waiterLimit)
    }
}
