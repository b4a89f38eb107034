// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import SystemPackage

/// One direction of standard input or output, which may be a terminal, a pipe or a file: reads and writes block, on a
/// thread of their own.
///
/// The descriptor is not made non-blocking, since it is shared with the shell and every other process at the terminal.
actor ByteChannel {
    /// Bytes of one read at the most: what fits a pipe.
    static let chunkSize = 64 << 10

    private let descriptor: FileDescriptor
    private let executor: BlockingExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(_ descriptor: FileDescriptor) throws(Errno) {
        self.descriptor = descriptor
        executor = try BlockingExecutor(name: "bytes-\(descriptor.rawValue)")
    }

    /// The next bytes, as soon as there are some; `nil` at the end.
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

    /// Writes all bytes of the buffer and hands it back.
    func write(_ buffer: Buffer) throws(Errno) {
        do {
            try descriptor.writeAll(buffer.bytes)
        } catch {
            throw error as? Errno ?? .ioError
        }
    }
}
