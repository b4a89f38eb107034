/// Documents that a rule has accepted, a few of which are fetched while the others wait: a pure value.
struct AcceptanceQueue<Candidate> {
    /// How many are fetched at once.
    let concurrency: Int
    /// How many wait at the most.
    let bound: Int

    private var waiting: [Candidate] = []
    private var running = 0

    init(concurrency: Int, bound: Int) {
        self.concurrency = concurrency
        self.bound = bound
    }

    /// - Returns: whether there was room.
    mutating func enter(_ candidate: Candidate) -> Bool {
        guard waiting.count < bound else { return false }
        waiting.append(candidate)
        return true
    }

    /// The next one to fetch, the oldest first; `nil` when none waits or enough are fetched. Each is ended once.
    mutating func begin() -> Candidate? {
        guard running < concurrency, !waiting.isEmpty else { return nil }
        running += 1
        return waiting.removeFirst()
    }

    /// One that was begun is over.
    mutating func end() { running -= 1 }

    /// Lets all go that wait.
    mutating func removeAll() { waiting = [] }
}
