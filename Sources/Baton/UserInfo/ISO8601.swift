// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Times as ISO 8601 text in UTC, for seconds since 1970.
///
/// `Date.ISO8601FormatStyle` traps on dates that a peer may send. The C library's calendar is used instead: it is the
/// proleptic Gregorian one, also before 1582.
package enum ISO8601 {
    /// The times that can be written: the years 0001 to 9999.
    package static let range: ClosedRange<Double> = -62_135_596_800...253_402_300_799.999

    /// `2026-11-21T09:30:00.125Z`; `nil` outside of ``range``.
    package static func format(milliseconds seconds: Double) -> String? {
        guard range.contains(seconds) else { return nil }
        // The range ends a millisecond before the year 10000, so that rounding stays inside.
        let milliseconds = Int64((seconds * 1000).rounded())
        let part = (milliseconds % 1000 + 1000) % 1000
        return dateAndTime((milliseconds - part) / 1000) + "." + padded(part, 3) + "Z"
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
        let form = /(\d{4})-(\d\d)-(\d\d)(?:[Tt\ ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d)))?/
        guard let match = text.wholeMatch(of: form.asciiOnlyDigits())?.output else { return nil }
        func number(_ digits: Substring?) -> Int32 { digits.flatMap { Int32($0) } ?? 0 }
        let (hour, minute, second) = (number(match.4), number(match.5), number(match.6))
        let (hours, minutes) = (number(match.9), number(match.10))
        var date = tm()
        (date.tm_year, date.tm_mon, date.tm_mday) = (number(match.1) - 1900, number(match.2) - 1, number(match.3))
        let asWritten = date
        let midnight = timegm(&date)
        // A day that the calendar does not have becomes another one.
        guard date.tm_mday == asWritten.tm_mday, date.tm_mon == asWritten.tm_mon, date.tm_year == asWritten.tm_year,
            date.tm_year > -1900, hour < 24, minute < 60, second < 60, hours < 24, minutes < 60
        else { return nil }
        let offset = (match.8 == "-" ? -60 : 60) * (hours * 60 + minutes)
        let time = hour * 3600 + minute * 60 + second - offset
        return (Int64(midnight) + Int64(time), match.7.flatMap { Double("0." + $0) } ?? 0)
    }

    private static func dateAndTime(_ seconds: Int64) -> String {
        var (time, date) = (time_t(seconds), tm())
        gmtime_r(&time, &date)
        let day = [date.tm_mon + 1, date.tm_mday].map { "-" + padded(Int64($0), 2) }.joined()
        let clock = [date.tm_hour, date.tm_min, date.tm_sec].map { padded(Int64($0), 2) }.joined(separator: ":")
        return padded(Int64(date.tm_year) + 1900, 4) + day + "T" + clock
    }

    private static func padded(_ value: Int64, _ width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
