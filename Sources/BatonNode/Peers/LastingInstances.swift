import BatonAccount

/// Which instances have earned a lasting query: those that were the first to show something newer of a device.
///
/// Anybody can announce what a device has announced, under as many names as he likes; only the device itself, and who is
/// quicker than it, is the first with something new. A device has one instance, and two while it changes its name.
struct LastingInstances {
    /// Instances of one device: more than it ever has by itself, and few enough that who is quicker with four of them
    /// still takes nothing from other devices.
    static var boundPerDevice: Int { 4 }

    /// The one that was first last comes last.
    private var instances: [DeviceID: [String]] = [:]

    /// Whether an instance has a lasting query.
    func contains(_ instance: String) -> Bool { instances.values.contains { $0.contains(instance) } }

    /// An instance has shown what is newer than all that was seen of a device.
    ///
    /// - Returns: the instance whose query lasts no longer for it.
    mutating func add(_ instance: String, of device: DeviceID) -> String? {
        remove(instance)
        var names = instances[device, default: []]
        names.append(instance)
        let displaced = names.count > Self.boundPerDevice ? names.removeFirst() : nil
        instances[device] = names
        return displaced
    }

    /// An instance has gone.
    mutating func remove(_ instance: String) {
        for (device, names) in instances where names.contains(instance) {
            let rest = names.filter { $0 != instance }
            instances[device] = rest.isEmpty ? nil : rest
        }
    }
}
