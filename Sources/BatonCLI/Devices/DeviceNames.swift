// SPDX-License-Identifier: Apache-2.0

/// The names of the devices in a listing. A name that two devices have gets the beginning of the id.
struct DeviceNames {
    private let ids: [String: Set<String>]

    /// - Parameter devices: each device of the listing, as often as it occurs.
    init(_ devices: [(name: String, id: String)]) {
        ids = Dictionary(devices.map { ($0.name, [$0.id]) }, uniquingKeysWith: { $0.union($1) })
    }

    /// The name of a device, safe to show: `laptop`, or `laptop (pcg6kclp)` if another device has that name too.
    func shown(_ name: String, _ id: String) -> String {
        let shown = SafeText.escaped(name)
        guard let ids = ids[name], ids.count > 1 else { return shown }
        return "\(shown) (\(SafeText.escaped(id.prefix(8))))"
    }
}
