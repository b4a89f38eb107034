// SPDX-License-Identifier: Apache-2.0

/// What keeps an advertisement from strangers, and strangers from making one. Every program has all of it: only the
/// tests of attacks, inside this package, leave one out, to see that nothing else stands in the way.
package struct AdvertisementGuards: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The account's seal: who has not its key reads nothing, and writes nothing that is believed.
    package static let seal = AdvertisementGuards(rawValue: 1)
    /// One size, whatever is said.
    package static let size = AdvertisementGuards(rawValue: 2)
    /// The device's signature: no other device of the account speaks in its name.
    package static let signature = AdvertisementGuards(rawValue: 4)
    /// Another salt and gate nonce in each period.
    package static let periods = AdvertisementGuards(rawValue: 8)

    package static let all: AdvertisementGuards = [.seal, .size, .signature, .periods]
}
