// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// What is known of other devices' revocation lists: a pure value, bounded.
struct MetDevices {
    /// Devices that are remembered, about 200 bytes each. Beyond it one is forgotten that never said what it has, as a
    /// device that somebody invented; where all have, any.
    static let bound = 256

    /// One of them.
    struct Device {
        /// What it said that it has.
        var revision: UInt64?
        /// What was asked of it: its revision then and this device's. Asking again would tell nothing new.
        var asked: [UInt64] = []
        /// A question that failed is about to be put again.
        var isAskedAgain = false
        /// When it was dialled to be told, and what this device had then.
        var told: (revision: UInt64, at: Instant)?
        var isBeingTold = false
        /// It is told again in a while.
        var isToBeToldAgain = false
        /// How often in a row it has not shown to have what it was told of.
        var attempts = 0
    }

    private var devices: [String: Device] = [:]

    var count: Int { devices.count }

    /// `nil` where nothing is known of it.
    subscript(id: String) -> Device? {
        get { devices[id] }
        set {
            if newValue != nil, devices[id] == nil { makeRoom() }
            devices[id] = newValue
        }
    }

    subscript(id: String, default device: @autoclosure () -> Device) -> Device {
        get { devices[id] ?? device() }
        set { self[id] = newValue }
    }

    private mutating func makeRoom() {
        guard devices.count >= Self.bound else { return }
        let forgotten = devices.first { $0.value.revision == nil }?.key ?? devices.keys.first
        if let forgotten { devices[forgotten] = nil }
    }
}
