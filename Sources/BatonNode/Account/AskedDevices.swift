import BatonAccount

/// Which devices an ``AccountLookup`` has asked: a pure value.
struct AskedDevices {
    /// Devices that are asked of each generation of keys: whoever was revoked can announce any number of them, and only
    /// under the keys of before.
    static let bound = 16

    private var devices: [UInt32: Set<DeviceID>] = [:]

    /// - Returns: whether the device is to be asked: once, and where others of the generation have left room.
    mutating func insert(_ device: DeviceID, under generation: UInt32) -> Bool {
        guard devices[generation, default: []].count < Self.bound else { return false }
        return devices[generation, default: []].insert(device).inserted
    }
}
