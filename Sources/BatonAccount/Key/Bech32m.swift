// SPDX-License-Identifier: Apache-2.0

/// Bech32m, the error-detecting text form of BIP 350, over raw buffers so that a secret never becomes a `String`.
///
/// Any four mistyped characters are certain to be found; more are missed once in 2^30.
enum Bech32m {
    /// The 32 characters of the data part, in the order of their values; `1`, `b`, `i` and `o` are not among them.
    static let alphabet: [UInt8] = Array("qpzry9x8gf2tvdw0s3jn54khce6mua7l".utf8)
    static let checksumCount = 6

    /// The longest text BIP 350 allows; the checksum's guarantee ends there.
    static let maximumCount = 90

    /// The final state of a valid checksum. This constant is the only difference between Bech32m and Bech32.
    private static let finalState: UInt32 = 0x2bc8_30a3

    /// The value 0 to 31 of a lower-case character, or nil when the alphabet has no such character.
    static func value(of character: UInt8) -> UInt8? {
        alphabet.firstIndex(of: character).map { UInt8($0) }
    }

    /// Whether the values of the data part, checksum included, belong to the prefix.
    static func isValid(prefix: some Sequence<UInt8>, values: some Sequence<UInt8>) -> Bool {
        var state = State(prefix: prefix)
        for value in values { state.feed(value) }
        return state.value == finalState
    }

    static func checksum(prefix: some Sequence<UInt8>, values: some Sequence<UInt8>) -> [UInt8] {
        var state = State(prefix: prefix)
        for value in values { state.feed(value) }
        for _ in 0..<checksumCount { state.feed(0) }
        let sum = state.value ^ finalState
        return (0..<checksumCount).map { UInt8((sum >> (5 * (5 - UInt32($0)))) & 31) }
    }

    /// The checksum's state: a remainder in a BCH code over GF(32).
    private struct State {
        private(set) var value: UInt32 = 1

        init(prefix: some Sequence<UInt8>) {
            for character in prefix { feed(character >> 5) }
            feed(0)
            for character in prefix { feed(character & 31) }
        }

        mutating func feed(_ next: UInt8) {
            let top = value >> 25
            value = (value & 0x1ff_ffff) << 5 ^ UInt32(next)
            if top & 1 != 0 { value ^= 0x3b6a_57b2 }
            if top & 2 != 0 { value ^= 0x2650_8e6d }
            if top & 4 != 0 { value ^= 0x1ea1_19fa }
            if top & 8 != 0 { value ^= 0x3d42_33dd }
            if top & 16 != 0 { value ^= 0x2a14_62b3 }
        }
    }
}
