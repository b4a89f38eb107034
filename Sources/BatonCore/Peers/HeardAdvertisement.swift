// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// An advertisement that was opened and verified.
package struct HeardAdvertisement: Sendable {
    /// Addresses that are never dialled: those of no single host, and loopback ones of others, which lead to this
    /// device.
    package static let undialled: Set<NetworkAddress.Scope> = [.invalid, .loopback]

    package let advertisement: Advertisement
    /// The account's keys that sealed it.
    package let generation: GenerationID
    package var undialled: Set<NetworkAddress.Scope>

    package init(
        _ advertisement: Advertisement, under generation: GenerationID,
        undialled: Set<NetworkAddress.Scope> = Self.undialled
    ) {
        (self.advertisement, self.generation, self.undialled) = (advertisement, generation, undialled)
    }

    package var content: AdvertisementContent { advertisement.content }
    package var device: DeviceID { advertisement.device }
    /// The addresses that may be dialled.
    var dialled: Set<NetworkAddress> { Set(content.addresses.filter { !undialled.contains($0.scope) }) }
}
