import BatonProtocol

/// Says which records are tried with all keys of the account that do not open with those of the device that their name
/// has shown: a pure value, told the time.
///
/// Anybody can put a record there. Were none tried, one packet would do to hide a device: the record of another one,
/// copied under the name of a device that has slept through a revocation before that one is heard. Were all tried, he who
/// sends thousands a second would have them cost up to 2 ms each. So whoever floods can keep a device from being found for
/// as long as he does, and whoever sends one packet cannot.
struct WideOpenings {
    /// A name is tried once in it.
    static var interval: Duration { .seconds(1) }
    /// Names that are tried within it: 40 ms of a second at the most.
    static var bound: Int { 20 }

    /// The names that were tried within the last interval, the one tried last comes last.
    private var tried: [(name: String, at: Instant)] = []

    /// - Returns: whether a record under this name is tried now.
    mutating func admit(_ instance: String, at now: Instant) -> Bool {
        tried.removeAll { now - $0.at >= Self.interval }
        guard tried.count < Self.bound, !tried.contains(where: { $0.name == instance }) else { return false }
        tried.append((instance, now))
        return true
    }
}
