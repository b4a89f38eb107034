// SPDX-License-Identifier: Apache-2.0

/// The kinds of frames of `baton/1`. Any other number on the wire is an unknown frame.
enum FrameType: UInt8 {
    case hello = 1
    case open = 2
    case response = 3
    case data = 4
    case credit = 5
    case end = 6
    case reset = 7
    case ping = 8
    case pong = 9
    case goAway = 10
}

/// The ten bytes in front of every payload: `u8 type | u8 flags | u32 stream | u32 length`, big endian.
struct FrameHeader {
    /// Bytes of a header on the wire.
    static let size = 10
    /// The flag that lets a receiver skip a frame of a type that it does not know.
    static let ignorable: UInt8 = 0x80

    var type: UInt8
    var flags: UInt8
    var stream: StreamID
    var length: Int

    init(type: FrameType, stream: StreamID, length: Int) {
        self.type = type.rawValue
        flags = 0
        self.stream = stream
        self.length = length
    }

    /// Reads a header from ten bytes at `pointer`, which need not be aligned.
    init(at pointer: UnsafeRawPointer) {
        type = pointer.load(as: UInt8.self)
        flags = pointer.load(fromByteOffset: 1, as: UInt8.self)
        stream = StreamID(rawValue: pointer.loadBigEndian(at: 2, as: UInt32.self))
        length = Int(pointer.loadBigEndian(at: 6, as: UInt32.self))
    }

    /// Writes the header as ten bytes at `pointer`, which need not be aligned.
    func write(to pointer: UnsafeMutableRawPointer) {
        pointer.storeBytes(of: type, as: UInt8.self)
        pointer.storeBytes(of: flags, toByteOffset: 1, as: UInt8.self)
        pointer.storeBigEndian(stream.rawValue, at: 2)
        pointer.storeBigEndian(UInt32(truncatingIfNeeded: length), at: 6)
    }
}

extension UnsafeRawPointer {
    /// The big-endian integer at `offset`, aligned or not.
    func loadBigEndian<Value: FixedWidthInteger & BitwiseCopyable>(at offset: Int, as _: Value.Type) -> Value {
        Value(bigEndian: loadUnaligned(fromByteOffset: offset, as: Value.self))
    }
}

extension UnsafeMutableRawPointer {
    /// Stores `value` big-endian at `offset`, aligned or not.
    func storeBigEndian<Value: FixedWidthInteger & BitwiseCopyable>(_ value: Value, at offset: Int) {
        storeBytes(of: value.bigEndian, toByteOffset: offset, as: Value.self)
    }
}
