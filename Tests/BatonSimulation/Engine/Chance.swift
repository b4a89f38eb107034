// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// Random numbers of one run: SplitMix64 from a seed and a purpose. Each device and each direction of each link has its
/// own, so that an act which is left out of a history does not change everything after it.
package struct Chance: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(_ seed: UInt64, _ purpose: UInt64 = 0, _ detail: UInt64 = 0) {
        state = seed
        for part in [purpose, detail] {
            state ^= part &* 0xD134_2543_DE82_EF95
            _ = next()
        }
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// The hash of two numbers.
    static func mixed(_ first: UInt64, _ second: UInt64) -> UInt64 {
        var chance = Chance(first, second)
        return chance.next()
    }

    /// A number from 0 up to, and without, 1.
    mutating func fraction() -> Double { Double(next() >> 11) * 0x1p-53 }

    mutating func happens(_ probability: Double) -> Bool { probability > 0 && fraction() < probability }

    /// A number from 0 up to, and without, the bound.
    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(max(bound, 1))) }

    /// A time between two, in seconds.
    mutating func seconds(_ least: Double, _ most: Double) -> Duration {
        .nanoseconds(Int64((least + (most - least) * fraction()) * 1e9))
    }

    /// The time until the next event of a random process, in seconds.
    mutating func interval(mean: Double) -> Double { -mean * Self.logarithm(1 - fraction()) }

    /// The natural logarithm of a number from 0 to 1, without a library of mathematics: the same on each machine.
    private static func logarithm(_ value: Double) -> Double {
        let significand = value.significand
        let ratio = (significand - 1) / (significand + 1)
        var (power, sum) = (ratio, 0.0)
        for number in stride(from: 1.0, through: 25, by: 2) {
            sum += power / number
            power *= ratio * ratio
        }
        return 2 * sum + Double(value.exponent) * 0.693_147_180_559_945_3
    }
}
