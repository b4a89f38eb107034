// SPDX-License-Identifier: Apache-2.0

/// A fixed block of raw memory that one owner fills and then hands over to the next.
///
/// Buffers carry bytes from a file or an application to the protocol core without a copy. `Session.send` keeps a
/// reference, and the bytes are copied once, into the output for the socket or TLS. The caller must not change a buffer
/// after handing it over.
///
/// Pointers from `bytes` and `writable` are valid while the buffer lives. Keep a reference across their use, with
/// `withExtendedLifetime` if it is the last one, or call `withBytes`.
package final class Buffer: @unchecked Sendable {  // reason: single-owner hand-over, nobody writes after handing it on
    /// The number of bytes that fit, fixed at creation.
    package let capacity: Int

    /// The number of filled bytes at the front, 0 to `capacity`.
    package var count: Int {
        didSet { precondition(count >= 0 && count <= capacity, "a buffer's count lies in 0...capacity") }
    }

    /// The index of the byte whose address is a multiple of ``pageSize``; nil if none was asked for. Data that begins
    /// there can be written to a disk past the page cache.
    package let alignedByte: Int?

    /// The alignment of ``alignedByte``, in bytes: 4096.
    package static let pageSize = 4096

    /// The memory that is freed with the buffer; nil if ``owner`` has it.
    private let allocation: UnsafeMutableRawPointer?
    /// The owner of memory that several buffers share.
    private let owner: AnyObject?
    private let storage: UnsafeMutableRawPointer

    /// Allocates an empty buffer of `capacity` bytes, whose content is undefined until written.
    ///
    /// - Parameter alignedByte: see ``alignedByte``; 0 or more, and nil by default.
    package init(capacity: Int, alignedByte: Int? = nil) {
        precondition(capacity >= 0, "a buffer's capacity is not negative")
        self.capacity = capacity
        self.alignedByte = alignedByte
        count = 0
        let lead = alignedByte.map(Self.lead) ?? 0
        // 64 bytes are one cache line, so that copies from file reads start aligned.
        let memory = UnsafeMutableRawPointer.allocate(
            byteCount: max(lead + capacity, 1), alignment: alignedByte == nil ? 64 : Self.pageSize)
        allocation = memory
        owner = nil
        storage = memory + lead
    }

    /// Divides one piece of memory into empty buffers.
    ///
    /// - Parameters:
    ///   - memory: begins at a multiple of ``pageSize``; nobody else uses it.
    ///   - owner: keeps the memory alive, and is released with the last buffer.
    ///   - capacity: of each buffer, more than 0. As many are made as fit.
    ///   - alignedByte: see ``alignedByte``.
    package static func buffers(
        in memory: UnsafeMutableRawBufferPointer, of owner: AnyObject, capacity: Int, alignedByte: Int
    ) -> [Buffer] {
        let stride = size(capacity: capacity, alignedByte: alignedByte)
        guard let start = memory.baseAddress else { return [] }
        precondition(Int(bitPattern: start).isMultiple(of: pageSize), "the memory begins with a page")
        return (0..<memory.count / stride).map {
            Buffer(start + $0 * stride + lead(alignedByte), of: owner, capacity: capacity, alignedByte: alignedByte)
        }
    }

    /// The memory of one buffer of ``buffers(in:of:capacity:alignedByte:)``, in bytes: whole pages.
    package static func size(capacity: Int, alignedByte: Int) -> Int {
        (lead(alignedByte) + capacity + pageSize - 1) / pageSize * pageSize
    }

    private static func lead(_ alignedByte: Int) -> Int { (pageSize - alignedByte % pageSize) % pageSize }

    private init(_ storage: UnsafeMutableRawPointer, of owner: AnyObject, capacity: Int, alignedByte: Int) {
        self.capacity = capacity
        self.alignedByte = alignedByte
        self.storage = storage
        self.owner = owner
        allocation = nil
        count = 0
    }

    /// Allocates a full buffer with a copy of `content`.
    package convenience init(copying content: some Collection<UInt8>) {
        self.init(capacity: content.count)
        writable.copyBytes(from: content)
        count = capacity
    }

    deinit {
        allocation?.deallocate()
    }

    /// Calls `body` with the filled bytes and keeps the buffer alive for the duration of the call.
    package func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { withExtendedLifetime(self) {} }
        return try body(bytes)
    }

    /// The filled bytes. Valid while the buffer lives, so not for a temporary buffer.
    package var bytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: storage, count: count)
    }

    /// The whole capacity, filled or not; set `count` after writing. Valid while the buffer lives.
    package var writable: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(start: storage, count: capacity)
    }

    /// Copies as much of `content` behind the filled bytes as fits, and returns how much that was. Bytes that are there
    /// already, through `writable`, are not copied.
    package func append(_ content: UnsafeRawBufferPointer) -> Int {
        let taken = min(content.count, capacity - count)
        if taken > 0, let source = content.baseAddress {
            if source != UnsafeRawPointer(storage + count) {
                (storage + count).copyMemory(from: source, byteCount: taken)
            }
            count += taken
        }
        return taken
    }
}
