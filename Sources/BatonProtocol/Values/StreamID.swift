// SPDX-License-Identifier: Apache-2.0

/// A side of the connection. It decides the parity of the stream ids that the side opens.
package enum Role: Sendable, Hashable {
    /// The side that made the connection; opens odd stream ids.
    case dialer
    /// The side that accepted the connection; opens even stream ids.
    case acceptor

    /// The first stream id this side opens.
    var firstStream: UInt32 {
        switch self {
        case .dialer: 1
        case .acceptor: 2
        }
    }

    /// Whether this side opens streams with the id.
    func opens(_ id: StreamID) -> Bool {
        id.rawValue != 0 && id.rawValue & 1 == firstStream & 1
    }
}

/// The number of a stream within one connection: odd if the dialer opened it, even if the acceptor did.
///
/// Ids rise and are never used again in a connection. 0 is the connection itself.
package struct StreamID: RawRepresentable, Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The number in a frame header.
    package let rawValue: UInt32

    /// Makes an id from the number in a frame header. Every number is a value; `Session` decides which are valid.
    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Stream 0: the connection as a whole.
    package static let connection = StreamID(rawValue: 0)

    /// Whether `left` was opened before `right`, for two ids of one side.
    package static func < (left: StreamID, right: StreamID) -> Bool {
        left.rawValue < right.rawValue
    }

    /// The number in decimal.
    package var description: String { String(rawValue) }
}
