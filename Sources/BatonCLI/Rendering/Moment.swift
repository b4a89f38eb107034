// SPDX-License-Identifier: Apache-2.0

import Baton
import FoundationEssentials

/// Formats points in time, for people and for scripts.
enum Moment {
    /// The present time as ISO 8601 with milliseconds, UTC, for `time` in `--json`.
    static var now: String {
        ISO8601.format(milliseconds: Date().timeIntervalSince1970) ?? ""
    }

    /// The age of an event: `now`, `40 s`, `2 min`, `3 h`, `12 d`.
    ///
    /// - Parameter seconds: the time of the event, since 1970, by the other device's clock. A time in the future is
    ///   `now`.
    static func age(of seconds: UInt64, now: Double = Date().timeIntervalSince1970) -> String {
        let age = now - Double(seconds)
        switch age {
        case ..<5: return "now"
        case ..<60: return "\(Int(age)) s"
        case ..<3600: return "\(Int(age / 60)) min"
        case ..<(48 * 3600): return "\(Int(age / 3600)) h"
        case ..<(36500 * 86_400): return "\(Int(age / 86_400)) d"
        case _: return "?"
        }
    }
}
