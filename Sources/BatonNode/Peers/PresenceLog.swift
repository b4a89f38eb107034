// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonProtocol

/// Says in sentences which devices have come and gone: a pure value, told the time.
struct PresenceLog {
    /// Sentences within ``interval``. The devices that a member of the account invents do not fill the log.
    static var bound: Int { 60 }
    static var interval: Duration { .seconds(60) }

    private var present: [DeviceID: String] = [:]
    private var begin = Instant(nanoseconds: 0)
    private var count = 0

    /// Compares the devices that are present with those of the last call.
    ///
    /// - Parameter devices: the names of all that are present.
    /// - Returns: the sentences to log now.
    mutating func update(_ devices: [DeviceID: String], at now: Instant) -> [String] {
        let gone = present.filter { devices[$0.key] == nil }.map { "\($0.value) has gone" }
        let come = devices.filter { present[$0.key] == nil }.map { "\($0.value) is on the network" }
        present = devices
        if now - begin >= Self.interval { (begin, count) = (now, 0) }
        let room = max(0, Self.bound - count)
        let sentences = gone.sorted() + come.sorted()
        count += sentences.count
        guard sentences.count > room else { return sentences }
        // The last sentence of an interval says that more are left out.
        guard room > 0 else { return [] }
        return sentences.prefix(room - 1) + ["more devices come and go than are named here"]
    }
}
