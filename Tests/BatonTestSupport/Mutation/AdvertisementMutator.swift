// SPDX-License-Identifier: Apache-2.0

/// Makes TXT records that nobody sealed out of ones that devices did: what somebody can send who sees an account's
/// advertisements and has none of its keys.
package struct AdvertisementMutator {
    /// Where the parts of a sealed form lie: salt, nonce, cipher text, tag.
    private static let parts = [0..<16, 16..<28, 28..<480, 480..<496]

    private let records: [[[UInt8]]]
    private let blobs: [[UInt8]]

    /// - Parameter records: Real advertisements as strings, as sealing gives them: `v=1`, `a=...`, `b=...`. Two or
    ///   more.
    package init(records: [[[UInt8]]]) {
        precondition(records.count > 1, "parts are swapped between two advertisements")
        self.records = records
        blobs = records.map { Array($0[1].dropFirst(2) + $0[2].dropFirst(2)) }
    }

    /// The raw form of a record: each string behind a byte with its length.
    package static func raw(_ strings: [[UInt8]]) -> [UInt8] {
        strings.flatMap { [UInt8($0.count)] + $0 }
    }

    /// The next raw record. Now and then it has the seal of a real one, in other clothes or none at all.
    package func next(using generator: inout SeededGenerator) -> [UInt8] {
        let one = Int.random(in: records.indices, using: &generator)
        let other = (one + Int.random(in: 1..<records.count, using: &generator)) % records.count
        switch Int.random(in: 0..<12, using: &generator) {
        case 0..<5: return damaged(Self.raw(records[one]), using: &generator)
        case 5: return spliced(Self.raw(records[one]), Self.raw(records[other]), using: &generator)
        case 6...8: return withPartSwapped(blobs[one], blobs[other], using: &generator)
        case 9: return Self.raw([records[one][0], records[one][1], records[other][2]])
        case 10: return Self.raw(withMoreStrings(records[one], records[other], using: &generator))
        case _: return Self.raw(records[one]) + generator.bytes(Int.random(in: 1...60, using: &generator))
        }
    }

    /// A raw record with the unchanged seal of a real one, written differently. Keys are in the other case, unknown
    /// strings come between its own, and its own are in another order, or one comes twice. Every device of the account
    /// opens it.
    package func disguised(using generator: inout SeededGenerator) -> [UInt8] {
        var strings = records[Int.random(in: records.indices, using: &generator)]
        for place in strings.indices where Bool.random(using: &generator) { strings[place][0] ^= 0x20 }
        strings.shuffle(using: &generator)
        strings.append(strings[Int.random(in: strings.indices, using: &generator)])
        for _ in 0..<Int.random(in: 0...3, using: &generator) {
            // Behind a key that no program reads, or without one.
            let text = Array("\(Bool.random(using: &generator) ? "z=" : "_")".utf8) + generator.bytes(20)
            strings.insert(text, at: Int.random(in: 0...strings.count, using: &generator))
        }
        return Self.raw(strings)
    }

    /// Some bits, bytes or stretches changed, taken out or put in.
    private func damaged(_ record: [UInt8], using generator: inout SeededGenerator) -> [UInt8] {
        var bytes = record
        let place = Int.random(in: bytes.indices, using: &generator)
        switch Int.random(in: 0..<6, using: &generator) {
        case 0, 1:
            bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
        case 2:
            for _ in 0..<Int.random(in: 1...20, using: &generator) {
                bytes[Int.random(in: bytes.indices, using: &generator)] = .random(in: 0...255, using: &generator)
            }
        case 3:
            let count = Bool.random(using: &generator) ? bytes.count : Int.random(in: 1...20, using: &generator)
            bytes.removeSubrange(place..<min(place + count, bytes.count))
        case 4:
            bytes.insert(contentsOf: generator.bytes(Int.random(in: 1...20, using: &generator)), at: place)
        case _:
            bytes.swapAt(place, Int.random(in: bytes.indices, using: &generator))
        }
        return bytes
    }

    /// The front of one and the rest of another.
    private func spliced(_ one: [UInt8], _ other: [UInt8], using generator: inout SeededGenerator) -> [UInt8] {
        let place = Int.random(in: 0...one.count, using: &generator)
        return Array(one[..<place] + other[place...])
    }

    /// Salt, nonce, cipher text or tag of another device or period, or a changed bit in one of them.
    private func withPartSwapped(
        _ one: [UInt8], _ other: [UInt8], using generator: inout SeededGenerator
    ) -> [UInt8] {
        var blob = one
        let part = Self.parts[Int.random(in: Self.parts.indices, using: &generator)]
        if Bool.random(using: &generator) {
            blob.replaceSubrange(part, with: other[part])
        } else {
            let place = Int.random(in: part, using: &generator)
            blob[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
        }
        return Self.raw([Array("v=1".utf8), Array("a=".utf8) + blob[..<248], Array("b=".utf8) + blob[248...]])
    }

    /// Strings of another one before, between or behind: of equal keys, the first counts.
    private func withMoreStrings(
        _ one: [[UInt8]], _ other: [[UInt8]], using generator: inout SeededGenerator
    ) -> [[UInt8]] {
        var strings = one
        for _ in 0..<Int.random(in: 1...2, using: &generator) {
            let added = other[Int.random(in: other.indices, using: &generator)]
            strings.insert(added, at: Int.random(in: 0...strings.count, using: &generator))
        }
        return strings
    }
}
