// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// What this device remembers of the account's other devices, so that one of them can be named when it is not there:
/// above all the one that was lost.
package struct KnownDevices: Sendable, Equatable {
    /// The most devices that are remembered; the one that was longest not seen makes room. 64 are under 96 KiB on disk.
    package static let capacity = 64

    /// A device as it was last seen.
    package struct Entry: Sendable, Equatable, Codable {
        /// Its id, as text.
        package var deviceID: String
        /// What it calls itself.
        package var name: String
        /// Seconds since 1970, by this device's clock.
        package var seen: UInt64
        /// The ``AccountState/revision`` that it was known to have.
        package var revision: UInt64
        /// Whether a connection has shown that it is a device of the account; nil where an earlier version wrote it
        /// down.
        package var isProved: Bool?
        /// What it was called before, since a connection has shown it; nil where there is no such name.
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

    /// The devices, those that are proved first, and then the one seen last first.
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

    /// Saves the devices that are known.
    package func save(_ devices: KnownDevices) throws(AccountError) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        do {
            try openExisting().write(AccountFile.devices, Array(encoder.encode(devices.entries)))
        } catch let error as AccountError {
            throw error
        } catch {
            throw .cryptography("JSON: \(error)")
        }
    }
}
