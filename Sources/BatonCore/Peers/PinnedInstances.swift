// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// The instances that discovery keeps, and so never forgets while they are on the network: those that were first to
/// show newer state of a device.
///
/// Anyone can replay a device's record under any number of instance names. Only the device itself, or an attacker that
/// is faster, is the first to show newer state. A device has one instance, and two while it changes its name. A member
/// of the account can invent any number of devices, until a connection has to prove them.
package struct PinnedInstances: Sendable {
    /// Pinned instances of one device: more than it ever has itself, and few enough that an attacker who wins all four
    /// takes nothing from other devices.
    package static var boundPerDevice: Int { 4 }
    /// Pinned instances of all devices that no connection has proved. A new device gets one, and can lose it to newer
    /// devices. Then its records are heard as before, but discovery may forget it if thousands are on the network.
    package static var boundUnproved: Int { 16 }
    /// Removed instances that are remembered, of all devices. The oldest is forgotten first.
    package static var boundGone: Int { 64 }

    /// Ordered by the time at which they last showed newer state, oldest first.
    private var instances: [(name: String, device: DeviceID)] = []
    /// Instances whose record was removed, which anyone can cause. The next record under the name may be genuine.
    private var gone: [(name: String, device: DeviceID)] = []

    /// Whether an instance is pinned.
    package func contains(_ instance: String) -> Bool { instances.contains { $0.name == instance } }

    /// The device that an instance was pinned for, also if the instance is gone since.
    func device(of instance: String) -> DeviceID? { (instances + gone).first { $0.name == instance }?.device }

    /// Pins an instance that was first to show newer state of a device.
    ///
    /// - Parameter isProved: whether a connection has proved a device.
    /// - Returns: the instance that lost its pin to this one.
    mutating func add(_ instance: String, of device: DeviceID, isProved: (DeviceID) -> Bool) -> String? {
        instances.removeAll { $0.name == instance }
        gone.removeAll { $0.name == instance }
        instances.append((instance, device))
        let own = instances.indices.filter { instances[$0].device == device }
        if own.count > Self.boundPerDevice { return instances.remove(at: own[0]).name }
        let unproved = instances.indices.filter { !isProved(instances[$0].device) }
        if unproved.count > Self.boundUnproved { return instances.remove(at: unproved[0]).name }
        return nil
    }

    /// Pins an instance again whose record was removed and came back unchanged, if that displaces no other.
    ///
    /// - Parameter isProved: whether a connection has proved a device.
    /// - Returns: whether it is pinned again.
    mutating func restore(_ instance: String, of device: DeviceID, isProved: (DeviceID) -> Bool) -> Bool {
        guard gone.contains(where: { $0.name == instance && $0.device == device }) else { return false }
        var back = self
        guard back.add(instance, of: device, isProved: isProved) == nil else { return false }
        self = back
        return true
    }

    /// Unpins an instance whose record was removed, and remembers it.
    mutating func remove(_ instance: String) {
        guard let index = instances.firstIndex(where: { $0.name == instance }) else { return }
        let device = instances[index].device
        gone.append(instances.remove(at: index))
        let own = gone.indices.filter { gone[$0].device == device }
        if own.count > Self.boundPerDevice { gone.remove(at: own[0]) }
        if gone.count > Self.boundGone { gone.removeFirst() }
    }
}
