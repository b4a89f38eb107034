/// Who is being dialled of the devices that no connection has proved: a pure value.
///
/// A user who names a device has it dialled in any case. What the node asks of devices by itself, such as for a listing,
/// finds so many places, so that devices which somebody invents cost no more than that.
struct DialPlaces {
    /// See ``NodeLimits/unprovedDials``.
    let bound: Int

    private var unproved: Set<String> = []

    init(bound: Int) {
        self.bound = bound
    }

    /// A device is dialled from now on, until ``leave(_:)``.
    ///
    /// - Parameter isWanted: by a user who named it.
    /// - Returns: whether it may be.
    mutating func enter(_ device: String, isProved: Bool, isWanted: Bool) -> Bool {
        guard !isProved else { return true }
        guard isWanted || unproved.count < bound else { return false }
        unproved.insert(device)
        return true
    }

    mutating func leave(_ device: String) { unproved.remove(device) }
}
