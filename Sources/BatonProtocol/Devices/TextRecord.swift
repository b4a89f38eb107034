// SPDX-License-Identifier: Apache-2.0

/// The bytes of a DNS TXT record: strings of at most 255 bytes, each behind its length (RFC 1035, section 3.3.14).
package enum TextRecord {
    /// The most bytes that a record may have here: 1200.
    ///
    /// Avahi accepts a record that does not fit into one packet with the rest, reports it as registered, and never
    /// sends it.
    package static let maximumLength = 1200

    /// Makes a record of strings of this program, in order.
    ///
    /// - Precondition: each string has 1 to 255 bytes (RFC 6763, section 6.1, forbids an empty one), and the record at
    ///   most ``maximumLength``.
    package static func encode(_ strings: [[UInt8]]) -> [UInt8] {
        let record = strings.flatMap { [UInt8($0.count)] + $0 }
        precondition(!strings.contains { $0.isEmpty } && record.count <= maximumLength, "nobody can read this record")
        // "An empty TXT record containing zero strings is not allowed". A single empty string stands for it.
        return record.isEmpty ? [0] : record
    }

    /// The strings of a record from the network; nil when its lengths do not add up or it is longer than
    /// ``maximumLength``. Empty strings are left out, as RFC 6763, section 6.1, asks.
    package static func decode(_ record: [UInt8]) -> [[UInt8]]? {
        guard record.count <= maximumLength else { return nil }
        var strings: [[UInt8]] = []
        var rest = record[...]
        while let length = rest.popFirst() {
            guard rest.count >= Int(length) else { return nil }
            if length > 0 { strings.append(Array(rest.prefix(Int(length)))) }
            rest = rest.dropFirst(Int(length))
        }
        return strings
    }
}
