/// Who is being dialled in brief: devices that no connection has proved and that no user has named. A pure value.
///
/// What the node asks of such devices by itself, such as for a listing, or who they are, finds so many places, so that
/// devices which somebody invents cost no more than that.
struct DialPlaces {
    /// See ``NodeLimits/unprovedDials``.
    let bound: Int

    private var dialled: Set<String> = []

    init(bound: Int) {
        self.bound = bound
    }

    /// A device is dialled from now on, until ``leave(_:)``.
    ///
    /// - Returns: whether it may be.
    mutating func enter(_ device: String) -> Bool {
        guard dialled.count < bound else { return false }
        dialled.insert(device)
        return true
    }

    mutating func leave(_ device: String) { dialled.remove(device) }
}
