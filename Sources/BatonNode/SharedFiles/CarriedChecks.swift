// SPDX-License-Identifier: Apache-2.0

/// What a file is checked for that another device names. Every program checks all of it: only the tests of attacks,
/// inside this package, leave one out, to see that nothing else stands in the way.
struct CarriedChecks: OptionSet, Sendable {
    let rawValue: UInt8

    /// Each part of a place is a name, and no way up.
    static let names = CarriedChecks(rawValue: 1)
    /// No link on the way leads out of the shared folder.
    static let beneath = CarriedChecks(rawValue: 2)

    /// What is built upon is called as the document is.
    static let label = CarriedChecks(rawValue: 4)

    static let all: CarriedChecks = [.names, .beneath, .label]
}
