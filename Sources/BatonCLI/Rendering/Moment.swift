// SPDX-License-Identifier: Apache-2.0

import Baton
import FoundationEssentials

/// Points in time, for people and for scripts.
enum Moment {
    /// Now, as `--json` prints `time`: ISO 8601 with milliseconds, UTC.
    static var now: String {
        ISO8601.format(milliseconds: Date().timeIntervalSince1970) ?? ""
    }

    /// How long ago something was: `now`, `40 s`, `2 min`, `3 h`, `12 d`.
    ///
    /// - Parameters:
    ///   - seconds: since 1970, by the clock of the device that tells it; a clock that is ahead shows as `now`.
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
