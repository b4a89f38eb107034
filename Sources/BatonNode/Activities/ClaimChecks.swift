// SPDX-License-Identifier: Apache-2.0

/// What a device is checked for that asks for a document, a stream or *continued*. Every program checks all of it: only
/// the tests of attacks, inside this package, leave one out, to see that nothing else stands in the way.
struct ClaimChecks: OptionSet, Sendable {
    let rawValue: UInt8

    /// It presents a claim that was given. Without, the current activity is anybody's, whatever he presents.
    static let given = ClaimChecks(rawValue: 1)
    /// The claim is its own.
    static let holder = ClaimChecks(rawValue: 2)
    /// A claim that was let go is none any more.
    static let release = ClaimChecks(rawValue: 4)
    /// Its name is the one that its verified advertisement gives, and not what a frame says.
    static let name = ClaimChecks(rawValue: 8)

    static let all: ClaimChecks = [.given, .holder, .release, .name]
}
