// SPDX-License-Identifier: Apache-2.0

/// The defences that keep strangers from reading or making advertisements. Programs always have all of them; tests of
/// attacks, inside this package, leave one out to show that it is needed.
package struct AdvertisementGuards: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The account's seal: without its key nobody can read an advertisement or make one that is accepted.
    package static let seal = AdvertisementGuards(rawValue: 1)
    /// One size for every advertisement.
    package static let size = AdvertisementGuards(rawValue: 2)
    /// The device's signature: no other device of the account speaks in its name.
    package static let signature = AdvertisementGuards(rawValue: 4)
    /// Another salt and gate nonce in each period.
    package static let periods = AdvertisementGuards(rawValue: 8)

    package static let all: AdvertisementGuards = [.seal, .size, .signature, .periods]
}
