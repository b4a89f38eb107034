// SPDX-License-Identifier: Apache-2.0

@testable import BatonCLI

extension CommandArgument: ExpressibleByStringInterpolation {
    public init(stringLiteral text: String) {
        guard let argument = CommandArgument(argument: text) else { preconditionFailure("an argument is not empty") }
        self = argument
    }
}
