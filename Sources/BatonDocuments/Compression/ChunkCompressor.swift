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
    /// - Throws: if there is no memory for the context.
    package init() throws(CompressionError) {
        guard let context = ZSTD_createCCtx() else { throw CompressionError() }
        self.context = context
        // The window is no larger than the content, whose size the context knows with each call.
        ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, Self.level)
    }

    deinit {
        ZSTD_freeCCtx(context)
    }

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

/// Makes chunks of the frames that ``ChunkCompressor`` makes, and refuses everything else.
///
/// The content is written straight to its place, whose size is the chunk's: no frame can make more of it, and there is
/// no window beside it. Owns one context of libzstd, used again for every chunk: 94 KiB, and no allocation after the
/// first. One owner at a time.
package struct ChunkDecompressor: ~Copyable {
    /// The largest window that a frame may ask for: a chunk. (libzstd's own limit, `ZSTD_d_windowLogMax`, is only for
    /// its streaming interface, which is not used.)
    package static let windowLimit = UInt64(ChunkLayout.chunkSize)

    private let context: OpaquePointer

    /// A decompressor.
    ///
    /// - Throws: if there is no memory for the context.
    package init() throws(CompressionError) {
        guard let context = ZSTD_createDCtx() else { throw CompressionError() }
        self.context = context
    }

    deinit {
        ZSTD_freeDCtx(context)
    }

    /// Fills `content`, all of it, from one frame.
    ///
    /// - Throws: for anything but one frame of this content. The content is undefined then, and the decompressor can go
    ///   on.
    package mutating func decompress(
        _ frame: UnsafeRawBufferPointer, into content: UnsafeMutableRawBufferPointer
    ) throws(CompressionError) {
        try Self.checkHeader(frame)
        let size = ZSTD_getFrameContentSize(frame.baseAddress, frame.count)
        guard size != baton_zstd_content_size_error() else { throw CompressionError() }
        guard size != baton_zstd_content_size_unknown(), size == UInt64(content.count) else { throw CompressionError() }
        let length = ZSTD_findFrameCompressedSize(frame.baseAddress, frame.count)
        guard ZSTD_isError(length) == 0, length == frame.count else { throw CompressionError() }
        let made = ZSTD_decompressDCtx(context, content.baseAddress, content.count, frame.baseAddress, frame.count)
        guard ZSTD_isError(made) == 0, made == content.count else { throw CompressionError() }
    }

    /// Looks at what libzstd's stable interface does not tell of a frame: RFC 8878, section 3.1.1.1.
    private static func checkHeader(_ frame: UnsafeRawBufferPointer) throws(CompressionError) {
        guard frame.count > 5, frame.loadUnaligned(as: UInt32.self) == UInt32(0xFD2F_B528).littleEndian else {
            throw CompressionError()
        }
        let descriptor = frame[4]
        let (dictionary, reserved, isSingleSegment) = (descriptor & 3, descriptor & 8, descriptor & 0x20 != 0)
        guard dictionary == 0, reserved == 0 else { throw CompressionError() }
        // The window of a single segment is the content.
        guard !isSingleSegment else { return }
        let base = UInt64(1) << UInt64(10 + frame[5] >> 3)
        guard base + base / 8 * UInt64(frame[5] & 7) <= windowLimit else { throw CompressionError() }
    }
}

extension ChunkDecompressor: @unchecked Sendable {}  // reason: it alone owns its context, and it is not copied

/// A compressed chunk was refused, which is the fault of the peer or damage on the way, or there is no memory for a
/// context.
package struct CompressionError: Error, Sendable, Hashable {}
