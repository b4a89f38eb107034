// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol
import FoundationEssentials

/// The other devices of the account, remembered so that a user can name one that is absent, above all a lost one.
package struct KnownDevices: Sendable, Equatable {
    /// The most devices that are remembered, under 96 KiB on disk. A further one evicts the device that was absent
    /// longest.
    package static let capacity = 64

    /// A device as it was last seen.
    package struct Entry: Sendable, Equatable, Codable {
        /// Its id, as text.
        package var deviceID: String
        /// The device's own name.
        package var name: String
        /// Seconds since 1970, by this device's clock.
        package var seen: UInt64
        /// The last known ``AccountState/revision`` of the device.
        package var revision: UInt64
        /// Whether a connection has shown that it is a device of the account; nil if an earlier version wrote the
        /// entry.
        package var isProved: Bool?
        /// Its earlier names, known from a connection; nil if there are none.
        package var formerNames: FormerNames?

        /// An entry; nothing is checked before it is read again.
        package init(
            deviceID: String, name: String, seen: UInt64, revision: UInt64, isProved: Bool = false,
            formerNames: FormerNames = FormerNames()
        ) {
            self.isProved = isProved
            self.formerNames = formerNames.isEmpty ? nil : formerNames
            self.deviceID = deviceID
            self.name = name
            self.seen = seen
            self.revision = revision
        }
    }

    /// The devices: proved ones first, each part sorted by when it was last seen.
    package let entries: [Entry]

    /// The devices that are worth remembering of these.
    package init(_ entries: [Entry] = []) {
        let sorted = entries.sorted { left, right in
            (left.isProved == true ? 1 : 0, left.seen) > (right.isProved == true ? 1 : 0, right.seen)
        }
        self.entries = Array(sorted.prefix(Self.capacity))
    }
}

extension AccountStore {
    /// The devices that were known when they were saved last; none where the file is missing or damaged, since they are
    /// a convenience and nothing more.
    package func loadKnownDevices() throws(AccountError) -> KnownDevices {
        guard let bytes = try openExisting().read(AccountFile.devices),
            let entries = bytes.withUnsafeBytes({
                try? JSONDecoder().decode([KnownDevices.Entry].self, from: Data($0))
            })
        else { return KnownDevices() }
        return KnownDevices(
            entries.filter { DeviceID($0.deviceID) != nil && (try? DeviceName.validated($0.name)) == $0.name })
    }

    /// Forgets a device.
    ///
    /// - Throws: ``AccountError/nodeRunning`` if a node runs: the node forgets the device then.
    package func forget(_ deviceID: String) throws(AccountError) {
        try withoutNode { () throws(AccountError) in
            try save(KnownDevices(try loadKnownDevices().entries.filter { $0.deviceID != deviceID }))
        }
    }

    /// Saves the devices that are known.
    package func save(_ devices: KnownDevices) throws(AccountError) {
        try openExisting().write(AccountFile.devices, json: devices.entries)
    }
}
