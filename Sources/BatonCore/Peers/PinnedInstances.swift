// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// The instances that discovery keeps, and so never forgets while they are on the network: those that were first to
/// show newer state of a device.
///
/// Anyone can replay a device's record under any number of instance names. Only the device itself, or an attacker that
/// is faster, is the first to show newer state. A device has one instance, and two while it changes its name. A member
/// of the account can invent any number of devices, until a connection has to prove them. A pin outlives the record,
/// which anybody can take away.
package struct PinnedInstances: Sendable {
    /// Pinned instances of one device: more than it ever has itself, and few enough that an attacker who wins all four
    /// takes nothing from other devices.
    package static var boundPerDevice: Int { 4 }
    /// Pinned instances of all devices that no connection has proved. A new device gets one, and can lose it to newer
    /// devices. Then its records are heard as before, but discovery may forget it if thousands are on the network.
    package static var boundUnproved: Int { 16 }

    /// Ordered by the time at which they last showed newer state, oldest first.
    private var instances: [(name: String, device: DeviceID)] = []

    /// Whether an instance is pinned.
    package func contains(_ instance: String) -> Bool { instances.contains { $0.name == instance } }

    /// The device that an instance is pinned for.
    func device(of instance: String) -> DeviceID? { instances.first { $0.name == instance }?.device }

    /// Pins an instance that was first to show newer state of a device.
    ///
    /// - Parameter isProved: whether a connection has proved a device.
    /// - Returns: the instance that lost its pin to this one.
    mutating func add(_ instance: String, of device: DeviceID, isProved: (DeviceID) -> Bool) -> String? {
        instances.removeAll { $0.name == instance }
        instances.append((instance, device))
        let own = instances.indices.filter { instances[$0].device == device }
        if own.count > Self.boundPerDevice { return instances.remove(at: own[0]).name }
        let unproved = instances.indices.filter { !isProved(instances[$0].device) }
        if unproved.count > Self.boundUnproved { return instances.remove(at: unproved[0]).name }
        return nil
    }
}
