// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A random number generator that a failing test can be run again with: SplitMix64 from a seed.
///
/// Not for keys; the sequence is part of the tests' meaning and must not change.
package struct SeededGenerator: RandomNumberGenerator, Sendable, CustomStringConvertible {
    /// The seed this generator started from.
    package let seed: UInt64
    private var state: UInt64

    /// A seed that a test which failed with it can be repeated with: `BATON_SEED` of the environment, or a random one.
    ///
    /// The test says it when it fails.
    package static var chosenSeed: UInt64 {
        ProcessInfo.processInfo.environment["BATON_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)
    }

    /// A generator that starts at ``chosenSeed``.
    package init() {
        self.init(seed: Self.chosenSeed)
    }

    /// A generator that starts at `seed`.
    package init(seed: UInt64) {
        self.seed = seed
        state = seed
    }

    /// The next 64 bits.
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// `count` random bytes.
    package mutating func bytes(_ count: Int) -> [UInt8] {
        // A word at a time: without optimisation, one by one takes a second for each 2 MB.
        [UInt8](unsafeUninitializedCapacity: count + 7) { buffer, initializedCount in
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            var offset = 0
            while offset < count {
                bytes.storeBytes(of: next(), toByteOffset: offset, as: UInt64.self)
                offset += 8
            }
            initializedCount = count
        }
    }

    /// What to print when a test fails.
    package var description: String { "seed \(seed)" }
}
