/// What an application was told of handoffs, so that one that it refused is never heard of again, and none fails twice.
struct HandoffLog {
    /// Handoffs that are remembered; the oldest is forgotten beyond it. Accepting is a user's action.
    static let bound = 64

    enum State: Equatable {
        /// The application agreed to continue it.
        case agreed
        /// The application declined, or the handoff has failed.
        case over
    }

    private var entries: [(id: [UInt8], state: State)] = []

    subscript(id: [UInt8]) -> State? { entries.last { $0.id == id }?.state }

    mutating func note(_ id: [UInt8], _ state: State) {
        entries.removeAll { $0.id == id }
        entries.append((id, state))
        if entries.count > Self.bound { entries.removeFirst() }
    }

    /// Notes that a handoff is over, and says whether the application is still to be told.
    mutating func fail(_ id: [UInt8]) -> Bool {
        defer { note(id, .over) }
        return self[id] != .over
    }
}
