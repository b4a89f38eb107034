// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The name under which a device shows up on the account's other devices.
///
/// It travels only inside the sealed advertisement and inside TLS, never in a certificate.
package enum DeviceName {
    package static let maximumCount = 63

    /// Checks a name that a person chose, and trims the spaces around it.
    package static func validated(_ name: String) throws(AccountError) -> String {
        guard !name.unicodeScalars.contains(where: isControl) else {
            throw .invalidDeviceName(reason: "it contains control characters")
        }
        let trimmed = trimmed(name)
        guard !trimmed.isEmpty else { throw .invalidDeviceName(reason: "it is empty") }
        guard trimmed.utf8.count <= maximumCount else {
            throw .invalidDeviceName(
                reason: "it has \(trimmed.utf8.count) bytes, and \(maximumCount) is the most; choose a shorter one")
        }
        return trimmed
    }

    /// The default name of a device: the host's name, up to the first dot.
    package static func fromHost() -> String {
        var buffer = [UInt8](repeating: 0, count: 256)
        let failed = buffer.withUnsafeMutableBytes { gethostname($0.baseAddress!, $0.count - 1) != 0 }
        return failed ? "device" : name(ofHost: String(decoding: buffer.prefix { $0 != 0 }, as: UTF8.self))
    }

    /// The device name for a host name; `device` if no usable character is left.
    static func name(ofHost host: String) -> String {
        let label = host.prefix { $0 != "." }
        let clean = String(String.UnicodeScalarView(label.unicodeScalars.filter { !isControl($0) }))
        let short = trimmed(prefix(of: clean, bytes: maximumCount))
        return short.isEmpty ? "device" : short
    }

    /// The longest beginning of a text that fits into so many bytes and ends between two characters.
    static func prefix(of text: String, bytes limit: Int) -> String {
        var end = text.startIndex
        var count = 0
        while end < text.endIndex {
            let next = text.index(after: end)
            count += text[end..<next].utf8.count
            if count > limit { break }
            end = next
        }
        return String(text[..<end])
    }

    /// Whether a scalar moves a cursor or breaks a line instead of showing something.
    static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        case _: false
        }
    }

    private static func trimmed(_ text: String) -> String {
        let rest = text.drop { $0 == " " }
        return String(rest.prefix(upTo: rest.lastIndex { $0 != " " }.map { rest.index(after: $0) } ?? rest.startIndex))
    }
}
