// SPDX-License-Identifier: Apache-2.0

/// The TXT record around a sealed advertisement (RFC 6763, section 6): `v=1`, then `a=` and `b=` with the two halves.
///
/// The record always has 506 bytes, length bytes included.
enum AdvertisementTXT {
    /// The longest record that is read, in bytes.
    static let maximumSize = 1200

    /// The size of every record that this code makes, length bytes included.
    static let size = 1 + 3 + 2 * (1 + maximumString)

    /// The longest string, in bytes, its length byte not counted.
    static let maximumString = 250

    private static let version: [UInt8] = Array("v=1".utf8)

    /// How many bytes of the sealed form one string carries, behind key and `=`.
    private static let part = maximumString - 2

    /// The strings of the record, without their length bytes.
    static func strings(of blob: [UInt8]) -> [[UInt8]] {
        assert(blob.count <= 2 * part, "the sealed form fits two strings, and fills them")
        return [version, Array("a=".utf8) + blob.prefix(part), Array("b=".utf8) + blob.dropFirst(part)]
    }

    /// The sealed form in a raw record.
    ///
    /// As RFC 6763 asks: keys in any case, the first of equal keys counts, unknown and empty strings are passed over.
    static func blob(in record: [UInt8]) throws(AdvertisementRejection) -> [UInt8] {
        guard record.count <= maximumSize else { throw .oversized(record.count) }
        var values: [UInt8: ArraySlice<UInt8>] = [:]
        var rest = record[...]
        while let count = rest.popFirst() {
            guard rest.count >= count else { throw .malformedRecord }
            let string = rest.prefix(Int(count))
            rest = rest.dropFirst(Int(count))
            guard string.count >= 2, string[string.startIndex + 1] == UInt8(ascii: "=") else { continue }
            let key = string[string.startIndex] | 0x20
            if values[key] == nil { values[key] = string.dropFirst(2) }
        }
        guard let version = values[UInt8(ascii: "v")] else { throw .malformedRecord }
        guard version.elementsEqual(Self.version.dropFirst(2)) else { throw .unsupportedVersion }
        guard let first = values[UInt8(ascii: "a")], let second = values[UInt8(ascii: "b")] else {
            throw .malformedRecord
        }
        let blob = Array(first + second)
        guard blob.count == AdvertisementSeal.size else { throw .wrongSize(blob.count) }
        return blob
    }
}
