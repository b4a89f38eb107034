// SPDX-License-Identifier: Apache-2.0

/// The mistake in a line of input: one sentence without a full stop, which the `error` event repeats.
struct BridgeProblem: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
