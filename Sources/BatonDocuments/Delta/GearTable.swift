// SPDX-License-Identifier: Apache-2.0

/// The 256 numbers of the rolling hash: part of the wire format, since both devices have to cut alike.
///
/// Number `n` is output `n + 1` of SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators",
/// 2014) from the seed 0x4261746F6E434443, the characters "BatonCDC".
enum GearTable {
    static let numbers: [UInt64] = {
        var state: UInt64 = 0x4261_746F_6E43_4443
        return (0..<256).map { _ in
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }()
}
