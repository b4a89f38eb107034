// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import Glibc

/// A check of a connection's first message without TLS, which sends most strangers away before anything is made for
/// them.
///
/// It lets nobody in. TLS reads every message that it does not refuse, and the gate judges that.
enum FirstMessage: Equatable {
    /// Not all of it has come. No more is known of it until it has so many bytes in all.
    case unclear(until: Int)
    /// No ClientHello in one record, or one without a token.
    case foreign
    /// A whole ClientHello in one record, with a name in it that has a token's form.
    case token(String)
    /// With several such names: this is for TLS to tell.
    case undecided

    /// Bytes of a record's header (RFC 8446, section 5.1), and of that of the handshake message in it (section 4).
    private static let headers = 9

    /// - Parameter bytes: all that have come.
    init(_ bytes: UnsafeRawBufferPointer) {
        // u8 type 22, u16 version of which the first byte never changes, u16 length; u8 type 1, u24 length.
        for (place, value) in [(0, 22), (1, 3), (5, 1)] where place < bytes.count && bytes[place] != UInt8(value) {
            self = .foreign
            return
        }
        guard bytes.count >= Self.headers else {
            self = .unclear(until: Self.headers)
            return
        }
        let record = Int(bytes[3]) << 8 | Int(bytes[4])
        let message = Int(bytes[6]) << 16 | Int(bytes[7]) << 8 | Int(bytes[8])
        guard message + 4 == record else {
            self = .foreign
            return
        }
        guard bytes.count >= record + 5 else {
            self = .unclear(until: record + 5)
            return
        }
        self = Self.token(in: UnsafeRawBufferPointer(rebasing: bytes[Self.headers..<record + 5]))
    }

    private static func token(in message: UnsafeRawBufferPointer) -> FirstMessage {
        guard let first = place(of: suffix, in: message, from: 0) else { return .foreign }
        guard place(of: suffix, in: message, from: first + 1) == nil else { return .undecided }
        guard first >= GateToken.labelCount else { return .foreign }
        let name = message[first - GateToken.labelCount..<first + suffix.count]
        guard name.allSatisfy({ $0 < 0x80 }) else { return .foreign }
        return .token(String(decoding: name, as: UTF8.self))
    }

    private static let suffix = Array(GateToken.suffix.utf8)

    /// Places that are looked at more closely, for whoever sends nothing but first bytes of the suffix. By chance one
    /// byte in 256 is one, and a ClientHello has some hundred to two thousand.
    private static let closerLooks = 64

    private static func place(of bytes: [UInt8], in text: UnsafeRawBufferPointer, from start: Int) -> Int? {
        guard let base = text.baseAddress else { return nil }
        var start = start
        for _ in 0..<closerLooks where start + bytes.count <= text.count {
            guard let found = memchr(base + start, Int32(bytes[0]), text.count - bytes.count + 1 - start) else {
                return nil
            }
            let place = base.distance(to: UnsafeRawPointer(found))
            if memcmp(found, bytes, bytes.count) == 0 { return place }
            start = place + 1
        }
        return nil
    }
}
