// SPDX-License-Identifier: Apache-2.0

/// Times as ISO 8601 text in UTC, for seconds since 1970.
///
/// `Date.ISO8601FormatStyle` traps on dates that a peer may send, so this is written by hand, for the proleptic
/// Gregorian calendar (days from civil, Howard Hinnant's algorithm).
package enum ISO8601 {
    /// The times that can be written: the years 0001 to 9999.
    package static let range: ClosedRange<Double> = -62_135_596_800...253_402_300_799.999

    /// `2026-11-21T09:30:00.125Z`; `nil` outside of ``range``.
    package static func format(milliseconds seconds: Double) -> String? {
        guard range.contains(seconds) else { return nil }
        // The range ends a millisecond before the year 10000, so that rounding stays inside.
        let milliseconds = Int64((seconds * 1000).rounded())
        let whole = milliseconds.quotientRoundedDown(by: 1000)
        return dateAndTime(whole) + "." + padded(milliseconds - whole * 1000, 3) + "Z"
    }

    /// `2026-11-21T09:30:00.125Z` with 3 to 9 digits behind the point, as many as the time needs to read back the same.
    ///
    /// - Parameter seconds: since 2001, as `Date` counts.
    /// - Returns: `nil` outside of ``range``, and if 9 digits are too few, as within some weeks of 2001.
    static func format(sinceReferenceDate seconds: Double) -> String? {
        let whole = seconds.rounded(.down)
        guard range.contains(whole + Double(referenceDate)) else { return nil }
        var scale = 1000.0
        for digits in 3...9 {
            let units = ((seconds - whole) * scale).rounded()
            if units < scale, whole + units / scale == seconds {
                return dateAndTime(Int64(whole) + referenceDate) + "." + padded(Int64(units), digits) + "Z"
            }
            scale *= 10
        }
        return nil
    }

    /// Seconds from 1970 to 2001.
    private static let referenceDate: Int64 = 978_307_200

    /// `2026-11-21T09:30:00Z`; `nil` outside of ``range``.
    package static func format(seconds: UInt64) -> String? {
        guard let whole = Int64(exactly: seconds), Double(whole) <= range.upperBound else { return nil }
        return dateAndTime(whole) + "Z"
    }

    /// Seconds since 1970 of `YYYY-MM-DD`, or `YYYY-MM-DDTHH:MM:SS` with an optional fraction and `Z` or `±HH:MM`.
    package static func parse(_ text: String) -> Double? {
        parts(text).map { Double($0.whole) + $0.fraction }
    }

    /// The time in seconds since 2001, as `Date` counts. Reads the text of ``format(sinceReferenceDate:)`` without
    /// loss.
    static func parse(sinceReferenceDate text: String) -> Double? {
        parts(text).map { Double($0.whole - referenceDate) + $0.fraction }
    }

    /// Seconds since 1970, rounded down, and the rest.
    private static func parts(_ text: String) -> (whole: Int64, fraction: Double)? {
        var rest = Substring(text)
        guard let year = takeNumber(4, &rest), take("-", &rest), let month = takeNumber(2, &rest), take("-", &rest),
            let day = takeNumber(2, &rest), year >= 1, (1...12).contains(month),
            (1...daysOfMonth(month, year)).contains(day)
        else { return nil }
        let midnight = days(year, month, day) * 86_400
        if rest.isEmpty { return (midnight, 0) }
        guard take("T", &rest) || take("t", &rest) || take(" ", &rest),
            let hour = takeNumber(2, &rest), take(":", &rest), let minute = takeNumber(2, &rest), take(":", &rest),
            let second = takeNumber(2, &rest), hour < 24, minute < 60, second < 60
        else { return nil }
        var fraction = 0.0
        if take(".", &rest) {
            let digits = rest.prefix { $0.isASCII && $0.isNumber }
            guard !digits.isEmpty, digits.count <= 9, let value = Double("0." + digits) else { return nil }
            fraction = value
            rest = rest.dropFirst(digits.count)
        }
        guard let offset = takeOffset(&rest), rest.isEmpty else { return nil }
        return (midnight + hour * 3600 + minute * 60 + second - offset, fraction)
    }

    private static func takeOffset(_ rest: inout Substring) -> Int64? {
        if take("Z", &rest) || take("z", &rest) { return 0 }
        let sign: Int64
        if take("+", &rest) {
            sign = 1
        } else if take("-", &rest) {
            sign = -1
        } else {
            return nil
        }
        guard let hours = takeNumber(2, &rest), take(":", &rest), let minutes = takeNumber(2, &rest), hours < 24,
            minutes < 60
        else { return nil }
        return sign * (hours * 3600 + minutes * 60)
    }

    private static func take(_ character: Character, _ rest: inout Substring) -> Bool {
        guard rest.first == character else { return false }
        rest.removeFirst()
        return true
    }

    private static func takeNumber(_ count: Int, _ rest: inout Substring) -> Int64? {
        let digits = rest.prefix(count)
        guard digits.count == count, digits.allSatisfy({ $0.isASCII && $0.isNumber }) else { return nil }
        rest = rest.dropFirst(count)
        return Int64(digits)
    }

    private static func dateAndTime(_ seconds: Int64) -> String {
        let day = seconds.quotientRoundedDown(by: 86_400)
        let time = seconds - day * 86_400
        let (year, month, date) = civil(day)
        return padded(year, 4) + "-" + padded(month, 2) + "-" + padded(date, 2) + "T" + padded(time / 3600, 2) + ":"
            + padded(time / 60 % 60, 2) + ":" + padded(time % 60, 2)
    }

    private static func padded(_ value: Int64, _ width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    private static func daysOfMonth(_ month: Int64, _ year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        case _: 31
        }
    }

    /// Days since 1970-01-01.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = shifted.quotientRoundedDown(by: 400)
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func civil(_ days: Int64) -> (Int64, Int64, Int64) {
        let shifted = days + 719_468
        let era = shifted.quotientRoundedDown(by: 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth + (shiftedMonth < 10 ? 3 : -9)
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }
}

extension Int64 {
    fileprivate func quotientRoundedDown(by divisor: Int64) -> Int64 {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
