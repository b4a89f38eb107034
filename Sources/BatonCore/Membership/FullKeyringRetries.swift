// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// Decides which records are tried with every key of the account, after the keys that their instance name suggests did
/// not open them. Keeps records that came too early. A value, told the time.
///
/// - If no record were tried with all keys, one packet could hide a device that slept through a revocation: a copy of
///   another device's record under its name.
/// - If every record were tried, an attacker who sends thousands a second would cost up to 2 ms of CPU for each.
/// - If early records were dropped, one packet just before the device's own would hide it.
///
/// So a flood can hide a device while it lasts, and a few packets cannot.
package struct FullKeyringRetries: Sendable {
    /// A record that came under an instance name.
    package struct Record: Sendable, Equatable {
        package let instance: String
        package let interface: UInt32
        package let txt: [UInt8]

        package init(instance: String, interface: UInt32, txt: [UInt8]) {
            (self.instance, self.interface, self.txt) = (instance, interface, txt)
        }
    }

    /// Records that are tried at once, and then as many in a second: at most 40 ms of CPU a second.
    package static let bound = 20
    /// Records of one name that wait for their turn. One more is dropped.
    package static let waitingOfOne = 4
    /// Records that wait in all, of at most 1,200 bytes each.
    package static let waitingBound = 64

    private var limiter = RateLimiter(capacity: bound, interval: .seconds(1) / bound)
    /// In the order of arrival.
    private var waiting: [Record] = []

    package init() {}

    /// Registers a record that has come.
    ///
    /// - Returns: whether to try it now. If not, it may wait for its turn.
    package mutating func admit(_ record: Record, at now: Instant) -> Bool {
        if waiting.isEmpty, limiter.take(at: now) { return true }
        let isKept =
            waiting.count < Self.waitingBound && !waiting.contains(record)
            && waiting.count(where: { $0.instance == record.instance }) < Self.waitingOfOne
        if isKept { waiting.append(record) }
        return false
    }

    /// Removes and returns the next record whose turn has come.
    package mutating func next(at now: Instant) -> Record? {
        !waiting.isEmpty && limiter.take(at: now) ? waiting.removeFirst() : nil
    }

    /// The time of the next turn; nil if nothing waits.
    package var nextTurn: Instant? { waiting.isEmpty ? nil : limiter.nextToken() }

    /// Drops the waiting records of a name.
    package mutating func forget(_ instance: String) { waiting.removeAll { $0.instance == instance } }
}
