import BatonAccount

/// Which devices an ``AccountLookup`` asks: a pure value.
///
/// Nothing tells it whether an advertisement is what the device says now or one that somebody else sends again. So a device
/// is asked by each that is newer than those before, two at a time, and the newest is never passed over.
struct AskedDevices<Heard> {
    /// Devices that are asked of each generation of keys: whoever was revoked can announce any number of them, and only
    /// under the keys of before.
    static var bound: Int { 16 }
    /// Questions to one device at once.
    static var boundAtOnce: Int { 2 }

    private struct Asked {
        var newest: (epoch: UInt64, sequence: UInt64)
        var running = 0
        /// What it is asked by next.
        var next: Heard?
    }

    private var devices: [UInt32: [DeviceID: Asked]] = [:]

    /// - Returns: whether the device is to be asked now: by what is newer than before, and where others of the generation
    ///   have left room.
    mutating func begin(
        _ heard: Heard, of device: DeviceID, _ moment: (epoch: UInt64, sequence: UInt64), under generation: UInt32
    ) -> Bool {
        guard var asked = devices[generation]?[device] else {
            guard devices[generation, default: [:]].count < Self.bound else { return false }
            devices[generation, default: [:]][device] = Asked(newest: moment, running: 1)
            return true
        }
        guard moment > asked.newest else { return false }
        asked.newest = moment
        let isNow = asked.running < Self.boundAtOnce
        if isNow { asked.running += 1 } else { asked.next = heard }
        devices[generation]?[device] = asked
        return isNow
    }

    /// A question has ended.
    ///
    /// - Returns: by what the device is to be asked next.
    mutating func end(_ device: DeviceID, under generation: UInt32) -> Heard? {
        guard var asked = devices[generation]?[device] else { return nil }
        let next = asked.next
        asked.next = nil
        if next == nil { asked.running -= 1 }
        devices[generation]?[device] = asked
        return next
    }
}
