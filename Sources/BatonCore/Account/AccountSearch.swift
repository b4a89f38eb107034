// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// Decides which devices an account lookup asks and when it is over: a value, told the time.
package struct AccountSearch {
    /// Devices that are asked of each generation of keys. A revoked device can announce any number of devices, but only
    /// under the keys of before.
    package static let bound = 16
    /// How long it goes on for devices under other lists after the first has answered.
    package static let grace = Duration.seconds(1)
    /// How long it takes at least: a revoked device may be the first to answer.
    package static let settling = Duration.seconds(3)
    /// It takes so many times its limit at most, if not all announced names were looked at before.
    package static let patience = 3

    /// A device, as it is asked. Lists that were signed apart begin keys of one generation.
    package struct Candidate: Hashable, Sendable {
        let device: DeviceID
        let keys: GenerationID

        package init(device: DeviceID, keys: GenerationID) {
            (self.device, self.keys) = (device, keys)
        }
    }

    private struct Question {
        let epoch, sequence: UInt64
        var isRunning = true
    }

    private let limit, settled, lastEnd: Instant
    private var end: Instant
    private var isTimeUp = false
    /// The newest question to each device.
    private var questions: [Candidate: Question] = [:]
    private var newestGeneration: UInt32 = 0
    /// Whether more names are announced than there was time to look at.
    package private(set) var isIncomplete = false

    package init(within limit: Duration, from now: Instant) {
        self.limit = now + limit
        end = self.limit
        settled = min(now + Self.settling, self.limit)
        lastEnd = now + limit * Self.patience
    }

    /// Whether nobody is waited for any longer. A device that was found is waited for: it may be the one that knows
    /// most.
    package var isOver: Bool { isTimeUp && !questions.values.contains(where: \.isRunning) }

    /// - Parameter isBehind: whether something is announced that nobody has looked at yet.
    package mutating func advance(to now: Instant, isBehind: Bool) {
        guard !isTimeUp, end <= now, !isBehind || lastEnd <= now else { return }
        (isTimeUp, isIncomplete) = (true, isBehind)
    }

    /// A device is announced. Somebody else may send again what it announced before, so it is asked once more by each
    /// newer advertisement, and the question before ends.
    ///
    /// - Returns: whether to ask it.
    package mutating func begin(_ candidate: Candidate, _ moment: (epoch: UInt64, sequence: UInt64)) -> Bool {
        guard !isTimeUp else { return false }
        if candidate.keys.number > newestGeneration {
            newestGeneration = candidate.keys.number
            // The devices that answered before do not know what this one knows.
            end = limit
        }
        if let last = questions[candidate] {
            guard moment > (last.epoch, last.sequence) else { return false }
        } else if questions.keys.count(where: { $0.keys == candidate.keys }) >= Self.bound {
            return false
        }
        questions[candidate] = Question(epoch: moment.epoch, sequence: moment.sequence)
        return true
    }

    /// The last question to a device has ended.
    ///
    /// - Parameter isTaken: whether there was an answer, and its lists were taken over. Other answers do not shorten
    ///   the search.
    package mutating func end(_ candidate: Candidate, isTaken: Bool, at now: Instant) {
        questions[candidate]?.isRunning = false
        // A revoked device has only older keys, and does not shorten the search for those that know of it.
        guard isTaken, candidate.keys.number == newestGeneration else { return }
        end = min(max(now + Self.grace, settled), limit)
    }
}
