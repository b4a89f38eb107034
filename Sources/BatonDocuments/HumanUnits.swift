// SPDX-License-Identifier: Apache-2.0

/// Sizes, rates and times as people read them. Locale-free, so that output stays the same everywhere.
package enum HumanUnits {
    private static let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]

    /// A size in binary units: `0 bytes`, `1 byte`, `1.5 KiB`, `412 MiB`, `1.0 GiB`. One decimal below 10.
    package static func bytes(_ count: UInt64) -> String {
        if count == 1 { return "1 byte" }
        if count < 1024 { return "\(count) bytes" }
        var shift: UInt64 = 10
        for unit in units {
            // In tenths, rounded half up, without floating point: what rounds up to the next unit is shown in that one.
            let whole = count >> shift
            let rest = count & ((1 << shift) - 1)
            let tenths = whole * 10 + ((((rest >> (shift - 10)) * 20) >> 10) + 1) / 2
            if tenths < 100 { return "\(tenths / 10).\(tenths % 10) \(unit)" }
            let rounded = whole + (rest >> (shift - 1))
            if rounded < 1024 || unit == units.last { return "\(rounded) \(unit)" }
            shift += 10
        }
        return "\(count) bytes"
    }

    /// A number of things: `1 device`, `2 devices`.
    ///
    /// - Parameter plural: of a noun that takes more than an `s`.
    package static func count(_ number: Int, _ noun: String, plural: String? = nil) -> String {
        number == 1 ? "1 \(noun)" : "\(number) \(plural ?? noun + "s")"
    }

    /// A rate in bytes per second: `610 MiB/s`.
    package static func rate(_ bytesPerSecond: Double) -> String {
        guard bytesPerSecond.isFinite, bytesPerSecond >= 0 else { return "? bytes/s" }
        return bytes(UInt64(min(bytesPerSecond, 1e18))) + "/s"
    }

    /// A time: `0 s`, `1 s`, `59 s`, `2 min 5 s`, `1 h 3 min`, `2 d 3 h`. Rounded up to seconds, because what is left
    /// of a second is still to be waited for.
    package static func duration(_ duration: Duration) -> String {
        let (whole, fraction) = duration.components
        if whole < 0 || fraction < 0 { return "0 s" }
        let seconds = whole < Int64.max && fraction > 0 ? whole + 1 : whole
        if seconds < 60 { return "\(seconds) s" }
        if seconds < 3600 { return pair(seconds / 60, "min", seconds % 60, "s") }
        if seconds < 24 * 3600 { return pair(seconds / 3600, "h", seconds % 3600 / 60, "min") }
        return pair(seconds / (24 * 3600), "d", seconds % (24 * 3600) / 3600, "h")
    }

    private static func pair(_ large: Int64, _ largeUnit: String, _ small: Int64, _ smallUnit: String) -> String {
        small == 0 ? "\(large) \(largeUnit)" : "\(large) \(largeUnit) \(small) \(smallUnit)"
    }
}
