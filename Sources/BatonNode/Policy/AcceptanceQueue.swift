import BatonAccount

/// Documents that a rule has accepted, a few of which are fetched while the others wait: a pure value.
///
/// No device has more than half of the places, nor two turns at once; and all of whom no connection has proved that they
/// exist have as much together as one device, and go last: whoever invents devices keeps none from its turn.
struct AcceptanceQueue<Candidate> {
    /// Whose turn it is.
    private enum Source: Hashable {
        case device(DeviceID)
        case unproved
    }

    /// How many are fetched at once.
    let concurrency: Int
    /// How many wait at the most.
    let bound: Int
    /// How many of one device wait at the most, and how many of all whom nothing has proved.
    private let boundPerSource: Int

    private var waiting: [(source: Source, candidate: Candidate)] = []
    private var running: Set<Source> = []

    /// - Parameters:
    ///   - concurrency: two at the least, so that what is slow to come keeps no other device waiting.
    ///   - bound: two at the least.
    ///   - boundPerSource: half of them. No program says another; only the tests of attacks see what one would let in.
    init(concurrency: Int, bound: Int, boundPerSource: Int? = nil) {
        precondition(concurrency > 1 && bound > 1, "there is a place for more than one device")
        self.concurrency = concurrency
        self.bound = bound
        self.boundPerSource = boundPerSource ?? bound / 2
    }

    /// - Returns: whether there was room.
    mutating func enter(_ candidate: Candidate, of device: DeviceID, isProved: Bool) -> Bool {
        let source = isProved ? Source.device(device) : .unproved
        guard waiting.count < bound, waiting.count(where: { $0.source == source }) < boundPerSource else {
            return false
        }
        waiting.append((source, candidate))
        return true
    }

    /// The next one to fetch, the oldest first; `nil` when none may be begun now.
    ///
    /// - Returns: it, and what is called once when it is over.
    mutating func begin() -> (candidate: Candidate, end: (inout Self) -> Void)? {
        guard running.count < concurrency else { return nil }
        let places = waiting.indices.filter { !running.contains(waiting[$0].source) }
        guard let place = places.first(where: { waiting[$0].source != .unproved }) ?? places.first else { return nil }
        let (source, candidate) = waiting.remove(at: place)
        running.insert(source)
        return (candidate, { $0.running.remove(source) })
    }

    /// Lets all go that wait.
    mutating func removeAll() { waiting = [] }
}
