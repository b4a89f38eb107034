// SPDX-License-Identifier: Apache-2.0

import BatonAccount

/// Which instances have earned a lasting query: those that were the first to show something newer of a device.
///
/// Anybody can announce what a device has announced, under as many names as he likes; only the device itself, and who
/// is quicker than it, is the first with something new. A device has one instance, and two while it changes its name.
/// And who has the account's keys can make himself any number of devices, until a connection is to show them.
struct LastingInstances {
    /// Instances of one device: more than it ever has by itself, and few enough that who is quicker with four of them
    /// still takes nothing from other devices.
    static var boundPerDevice: Int { 4 }
    /// Instances of all devices that no connection has shown yet: a third of the lasting queries that there are. Who is
    /// new gets one, and may lose it to others who are new; it is heard in its turns then, each half a minute.
    static var boundUnproved: Int { 16 }
    /// Instances that have gone and are remembered: of all devices, the one that went last comes last.
    static var boundGone: Int { 64 }

    /// The one that was first last comes last.
    private var instances: [(name: String, device: DeviceID)] = []
    /// Anybody can take a device's record away; its name shows it all the same, and the next record may be its own.
    private var gone: [(name: String, device: DeviceID)] = []

    /// Whether an instance has a lasting query.
    func contains(_ instance: String) -> Bool { instances.contains { $0.name == instance } }

    /// Of which device an instance has shown what was newer than all that was seen of it, also where it has gone since.
    func device(of instance: String) -> DeviceID? { (instances + gone).first { $0.name == instance }?.device }

    /// An instance has shown what is newer than all that was seen of a device.
    ///
    /// - Parameter isProved: whether a connection has shown a device.
    /// - Returns: the instance whose query lasts no longer for it.
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

    /// An instance that has gone shows its device again, with nothing new: it had earned its place before, and takes it
    /// again where nobody else has it.
    ///
    /// - Parameter isProved: whether a connection has shown a device.
    /// - Returns: whether it has a lasting query again.
    mutating func comeBack(_ instance: String, of device: DeviceID, isProved: (DeviceID) -> Bool) -> Bool {
        guard gone.contains(where: { $0.name == instance && $0.device == device }) else { return false }
        var back = self
        guard back.add(instance, of: device, isProved: isProved) == nil else { return false }
        self = back
        return true
    }

    /// An instance has gone.
    mutating func remove(_ instance: String) {
        guard let index = instances.firstIndex(where: { $0.name == instance }) else { return }
        let device = instances[index].device
        gone.append(instances.remove(at: index))
        let own = gone.indices.filter { gone[$0].device == device }
        if own.count > Self.boundPerDevice { gone.remove(at: own[0]) }
        if gone.count > Self.boundGone { gone.removeFirst() }
    }
}
