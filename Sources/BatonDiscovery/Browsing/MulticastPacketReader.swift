// SPDX-License-Identifier: Apache-2.0

/// Reads the fields of a DNS message (RFC 1035, section 4.1). Every result is nil at the end of the packet.
struct MulticastPacketReader {
    let packet: UnsafeRawBufferPointer
    var position = 0

    /// Reads an integer in network order.
    mutating func integer<Value: FixedWidthInteger & UnsignedInteger>() -> Value? {
        bytes(MemoryLayout<Value>.size)?.reduce(0) { $0 << 8 | Value($1) }
    }

    mutating func bytes(_ count: Int) -> Slice<UnsafeRawBufferPointer>? {
        guard packet.count - position >= count else { return nil }
        defer { position += count }
        return packet[position..<position + count]
    }

    mutating func skip(_ count: Int) -> Bool { bytes(count) != nil }

    /// Reads a name of at most 8 labels and 8 pointers. Pointers must lead back, so that they end.
    mutating func name() -> [String]? {
        var labels: [String] = []
        var end: Int?
        var limit = position
        var pointers = 0
        while labels.count <= 8 {
            guard let length: UInt8 = integer() else { return nil }
            switch length {
            case 0:
                if let end { position = end }
                return labels
            case 1...63:
                guard let label = bytes(Int(length)) else { return nil }
                labels.append(String(decoding: label, as: UTF8.self))
            case 0xC0...0xFF:
                guard let low: UInt8 = integer() else { return nil }
                let target = Int(length & 0x3F) << 8 | Int(low)
                pointers += 1
                // A packet of pointers alone would cost a reader a thousand times what it cost its sender.
                guard pointers <= 8, target < limit else { return nil }
                end = end ?? position
                (position, limit) = (target, target)
            default:
                return nil
            }
        }
        return nil
    }
}
