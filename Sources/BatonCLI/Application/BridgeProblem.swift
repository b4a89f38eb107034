// SPDX-License-Identifier: Apache-2.0

/// What is wrong with a line that came in: one sentence without a full stop, which the `error` event gives back.
struct BridgeProblem: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
