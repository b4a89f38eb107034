// SPDX-License-Identifier: Apache-2.0

/// Takes a stream of frames apart by the specification alone, without the code under test.
struct FrameReader {
    struct Frame {
        var type: UInt8
        var stream: UInt32
        var length: Int
        /// The first bytes of the payload, as many as any frame has fields.
        var head: [UInt8] = []

        /// The number in these bytes of the payload, big endian.
        func number(_ range: Range<Int>) -> UInt64 {
            guard range.upperBound <= head.count else { return 0 }
            return head[range].reduce(0) { $0 << 8 | UInt64($1) }
        }
    }

    /// Bytes of the longest frame that has fields: HELLO.
    private static let headSize = 56

    private var header: [UInt8] = []
    private var frame: Frame?
    private var remaining = 0

    /// Whether the last byte was the last of a frame.
    var isBetweenFrames: Bool { header.isEmpty && frame == nil }

    /// Reads bytes, and tells each header when it is whole and each frame when it is.
    mutating func read(
        _ bytes: some Collection<UInt8>, header begin: (Frame) -> Void, frame end: (Frame) -> Void
    ) {
        var rest = bytes[...]
        while !rest.isEmpty {
            if var current = frame {
                let part = rest.prefix(remaining)
                current.head += part.prefix(Self.headSize - current.head.count)
                frame = current
                remaining -= part.count
                rest = rest.dropFirst(part.count)
            } else {
                let part = rest.prefix(10 - header.count)
                header += part
                rest = rest.dropFirst(part.count)
                guard header.count == 10 else { return }
                let stream = header[2..<6].reduce(0) { $0 << 8 | UInt32($1) }
                remaining = header[6...].reduce(0) { $0 << 8 | Int($1) }
                let read = Frame(type: header[0], stream: stream, length: remaining)
                frame = read
                header.removeAll(keepingCapacity: true)
                begin(read)
            }
            guard remaining == 0, let whole = frame else { continue }
            frame = nil
            end(whole)
        }
    }
}
