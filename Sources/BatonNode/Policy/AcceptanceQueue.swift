// SPDX-License-Identifier: Apache-2.0

import BatonAccount

/// Documents that a rule has accepted, a few of which are fetched while the others wait: a pure value.
///
/// No device has more than half of the places, nor two turns at once, nor one while it rests. The turn of a device that
/// has gone in the middle is another one's until it is back.
struct AcceptanceQueue<Candidate: Sendable>: Sendable {
    /// How many whose devices have gone keep no turn: each is waited for at its place of all handoffs. One more keeps
    /// it.
    static var awayBound: Int { 8 }

    /// How many are fetched at once, besides those whose devices have come back.
    let concurrency: Int
    /// How many wait at the most.
    let bound: Int
    /// How many of one device wait at the most.
    private var boundPerDevice: Int { bound / 2 }

    private var waiting: [(device: DeviceID, candidate: Candidate)] = []
    private var running: Set<DeviceID> = []
    private var away: Set<DeviceID> = []
    private var resting: Set<DeviceID> = []

    /// - Parameters:
    ///   - concurrency: two at the least, so that what is slow to come keeps no other device waiting.
    ///   - bound: two at the least.
    init(concurrency: Int, bound: Int) {
        precondition(concurrency > 1 && bound > 1, "there is a place for more than one device")
        self.concurrency = concurrency
        self.bound = bound
    }

    /// - Returns: whether there was room.
    mutating func enter(_ candidate: Candidate, of device: DeviceID) -> Bool {
        guard waiting.count < bound, waiting.count(where: { $0.device == device }) < boundPerDevice else {
            return false
        }
        waiting.append((device, candidate))
        return true
    }

    /// The next one to fetch, the oldest first; `nil` when none may be begun now.
    mutating func begin() -> Candidate? {
        let free = waiting.firstIndex {
            !running.contains($0.device) && !away.contains($0.device) && !resting.contains($0.device)
        }
        guard running.count < concurrency, let free else { return nil }
        let (device, candidate) = waiting.remove(at: free)
        running.insert(device)
        return candidate
    }

    /// The device of what was begun has gone: its turn is free, and it has no other one meanwhile.
    mutating func leave(_ device: DeviceID) {
        guard away.count < Self.awayBound, running.remove(device) != nil else { return }
        away.insert(device)
    }

    /// It is back, and what was begun goes on: beside as many as there may be, where its turn has gone to another one.
    mutating func comeBack(_ device: DeviceID) {
        if away.remove(device) != nil { running.insert(device) }
    }

    /// What was begun of a device is over.
    ///
    /// - Parameter rests: whether it has no turn until ``wake(_:)``.
    mutating func end(_ device: DeviceID, rests: Bool) {
        running.remove(device)
        away.remove(device)
        if rests { resting.insert(device) }
    }

    /// A device has rested.
    mutating func wake(_ device: DeviceID) { resting.remove(device) }

    /// Lets all go that wait.
    mutating func removeAll() { waiting = [] }
}
