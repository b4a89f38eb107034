// SPDX-License-Identifier: Apache-2.0

/// The names under which service instances are registered: random, of one length, and telling nothing.
package enum InstanceName {
    /// Characters of a name: 60 random bits, so that no two devices choose the same. The length is fixed, because a
    /// different length would mark a device.
    static let length = 12

    private static let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)

    /// A fresh name from the system's random number generator.
    package static func random() -> String {
        String(decoding: (0..<length).map { _ in alphabet[Int.random(in: 0..<32)] }, as: UTF8.self)
    }

    /// Whether a name from the network can be one of Baton's: 1 to 63 lower-case letters and digits.
    ///
    /// Other services may use any 63 bytes (RFC 6763, section 4.1.1). Such names get no query, and a plausible one
    /// needs no escaping.
    package static func isPlausible(_ name: String) -> Bool {
        (1...63).contains(name.utf8.count)
            && name.utf8.allSatisfy {
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
            }
    }
}
