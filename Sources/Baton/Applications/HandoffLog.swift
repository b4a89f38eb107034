// SPDX-License-Identifier: Apache-2.0

/// The handoffs that an application was told of. The log makes sure that the application hears nothing of a handoff
/// that it refused, that no handoff fails twice, and that each one that it agreed to ends.
struct HandoffLog {
    /// Handoffs that are remembered; the oldest is forgotten beyond it. Accepting is a user's action.
    static let bound = 64

    enum State {
        /// The application is being asked whether it continues it.
        case asked
        /// It has failed while the application was being asked, which is told so when it has agreed.
        case failed(UserActivityError)
        /// The application agreed to continue it.
        case agreed
        /// The application has the activity, and decides whether it continues it.
        case continuing
        /// The application declined, or the handoff came to its end.
        case over
    }

    private struct Entry {
        let id: [UInt8]
        let type: String
        var state: State
    }

    private var entries: [Entry] = []

    subscript(id: [UInt8]) -> State? { entries.last { $0.id == id }?.state }

    func isOver(_ id: [UInt8]) -> Bool {
        if case .over? = self[id] { true } else { false }
    }

    mutating func note(_ id: [UInt8], of type: String, _ state: State) {
        entries.removeAll { $0.id == id }
        entries.append(Entry(id: id, type: type, state: state))
        if entries.count > Self.bound { entries.removeFirst() }
    }

    /// Records that a handoff has failed. Returns whether the application is to be told now.
    mutating func fail(_ id: [UInt8], of type: String, with error: UserActivityError) -> Bool {
        switch self[id] {
        case .over?, .failed?: return false
        case .asked?:
            note(id, of: type, .failed(error))
            return false
        case .agreed?, .continuing?, nil:
            note(id, of: type, .over)
            return true
        }
    }

    /// Records the failure of all handoffs whose activity the application does not have yet.
    ///
    /// - Returns: the types of those that the application is to be told of now.
    mutating func failAll(with error: UserActivityError) -> [String] {
        var told: [String] = []
        for index in entries.indices {
            switch entries[index].state {
            case .asked: entries[index].state = .failed(error)
            case .agreed:
                entries[index].state = .over
                told.append(entries[index].type)
            case .failed, .continuing, .over: break
            }
        }
        return told
    }
}
