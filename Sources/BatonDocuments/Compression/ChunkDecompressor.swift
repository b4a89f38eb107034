// SPDX-License-Identifier: Apache-2.0

import CZstd

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
    /// - Throws: `noMemory`.
    package init() throws(CompressionError) {
        guard let context = ZSTD_createDCtx() else { throw .noMemory }
        self.context = context
    }

    deinit {
        ZSTD_freeDCtx(context)
    }

    /// Bytes that the context takes.
    var memory: Int { ZSTD_sizeof_DCtx(context) }

    /// Fills `content`, all of it, from one frame.
    ///
    /// - Throws: what is wrong with the frame. What `content` holds is then undefined; the decompressor is as good as
    ///   before.
    package mutating func decompress(
        _ frame: UnsafeRawBufferPointer, into content: UnsafeMutableRawBufferPointer
    ) throws(CompressionError) {
        try Self.checkHeader(frame)
        let size = ZSTD_getFrameContentSize(frame.baseAddress, frame.count)
        guard size != baton_zstd_content_size_error() else { throw .notFrame }
        guard size != baton_zstd_content_size_unknown(), size == UInt64(content.count) else { throw .wrongSize }
        let length = ZSTD_findFrameCompressedSize(frame.baseAddress, frame.count)
        guard ZSTD_isError(length) == 0, length == frame.count else { throw .badLength }
        let made = ZSTD_decompressDCtx(context, content.baseAddress, content.count, frame.baseAddress, frame.count)
        guard ZSTD_isError(made) == 0, made == content.count else { throw .damaged }
    }

    /// Looks at what libzstd's stable interface does not tell of a frame: RFC 8878, section 3.1.1.1.
    private static func checkHeader(_ frame: UnsafeRawBufferPointer) throws(CompressionError) {
        guard frame.count > 5, frame.loadUnaligned(as: UInt32.self) == UInt32(0xFD2F_B528).littleEndian else {
            throw .notFrame
        }
        let descriptor = frame[4]
        let (dictionary, reserved, isSingleSegment) = (descriptor & 3, descriptor & 8, descriptor & 0x20 != 0)
        guard dictionary == 0, reserved == 0 else { throw .unsuitable }
        // The window of a single segment is the content.
        guard !isSingleSegment else { return }
        let base = UInt64(1) << UInt64(10 + frame[5] >> 3)
        guard base + base / 8 * UInt64(frame[5] & 7) <= windowLimit else { throw .unsuitable }
    }
}

extension ChunkDecompressor: @unchecked Sendable {}  // reason: it alone owns its context, and it is not copied
