// SPDX-License-Identifier: Apache-2.0

import CZstd

/// Compresses chunks, each into a Zstandard frame of its own (RFC 8878), at level 1, that tells its content's size and
/// uses no dictionary.
///
/// Owns one context of libzstd, used again for every chunk: 570 KiB after the first one of 1 MiB, and no allocation
/// from then on. One owner at a time.
package struct ChunkCompressor: ~Copyable {
    /// The level: the fastest of the ordinary ones, since a chunk is compressed while the link waits for it.
    package static let level: Int32 = 1

    private let context: OpaquePointer

    /// A compressor.
    ///
    /// - Throws: `noMemory`.
    package init() throws(CompressionError) {
        guard let context = ZSTD_createCCtx() else { throw .noMemory }
        self.context = context
        // The window is no larger than the content, whose size the context knows with each call.
        ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, Self.level)
    }

    deinit {
        ZSTD_freeCCtx(context)
    }

    /// Bytes that the context takes.
    var memory: Int { ZSTD_sizeof_CCtx(context) }

    /// Writes the frame of a chunk.
    ///
    /// - Parameter room: where to write to. It need not be larger than the chunk.
    /// - Returns: bytes written; nil where the frame would not be a sixteenth less than the content, or not fit: send
    ///   that plain.
    package mutating func compress(
        _ content: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer
    ) -> Int? {
        let limit = min(room.count, content.count - content.count / 16 - MemoryLayout<UInt32>.size)
        guard limit > 0 else { return nil }
        let count = ZSTD_compress2(context, room.baseAddress, limit, content.baseAddress, content.count)
        return ZSTD_isError(count) == 0 ? count : nil
    }
}

extension ChunkCompressor: @unchecked Sendable {}  // reason: it alone owns its context, and it is not copied
