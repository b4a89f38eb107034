// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import SystemPackage

/// One direction of standard input or output. Reads and writes block, on a thread of their own.
///
/// The descriptor may be a terminal, a pipe or a file. It stays blocking: the shell and the other processes at the
/// terminal share it.
actor ByteChannel {
    /// The most bytes of one read: 64 KiB, the size of a pipe.
    static let chunkSize = 64 << 10

    private let descriptor: FileDescriptor
    private let executor: BlockingExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(_ descriptor: FileDescriptor) throws(Errno) {
        self.descriptor = descriptor
        executor = try BlockingExecutor(name: "bytes-\(descriptor.rawValue)")
    }

    /// Waits for bytes and returns them; `nil` at the end.
    func read() throws(Errno) -> Buffer? {
        let buffer = Buffer(capacity: Self.chunkSize)
        let count: Int
        do {
            count = try descriptor.read(into: buffer.writable)
        } catch {
            throw error as? Errno ?? .ioError
        }
        buffer.count = count
        return count > 0 ? buffer : nil
    }

    /// Writes all bytes of the buffer.
    func write(_ buffer: Buffer) throws(Errno) {
        do {
            try descriptor.writeAll(buffer.bytes)
        } catch {
            throw error as? Errno ?? .ioError
        }
    }
}
