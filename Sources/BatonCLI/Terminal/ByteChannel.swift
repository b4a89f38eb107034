// SPDX-License-Identifier: Apache-2.0

import BatonAccount
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
    /// The most bytes of a line of text that are kept: 4096, as of a line that is typed at a terminal.
    private static let lineBound = 4096

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

    /// Reads one line as a secret, without its end.
    func readSecret(limit: Int) throws -> SecretBytes {
        try SecretBytes(readingFrom: descriptor, limit: limit)
    }

    /// Reads one line as text, and nothing behind it; `nil` at the end of the input.
    ///
    /// A read by stdio would keep the process from its end: `exit` of glibc 2.41 waits for the lock of `stdin`.
    func readLine() -> String? {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while (try? withUnsafeMutableBytes(of: &byte) { try descriptor.read(into: $0) }) == 1 {
            if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
            if line.count < Self.lineBound { line.append(byte) }
        }
        return line.isEmpty ? nil : String(decoding: line, as: UTF8.self)
    }

    func write(_ buffer: Buffer) throws(Errno) {
        do {
            try descriptor.writeAll(buffer.bytes)
        } catch {
            throw error as? Errno ?? .ioError
        }
    }
}
