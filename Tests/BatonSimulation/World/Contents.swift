// SPDX-License-Identifier: Apache-2.0

import BatonCore

/// The contents that the simulated devices hand over: numbers, and what the invariants compare.
enum Contents: World {
    typealias Activity = Item
    /// The number of the application's device.
    typealias Application = Int
    typealias Progress = Int

    struct Kept: Sendable {
        let item: Item
        var pieces = 0
    }

    static func keep(_ activity: Item) -> Kept { Kept(item: activity) }
    static func note(_ progress: Int, in kept: inout Kept) { kept.pieces = progress }
    static func failure(_ refusal: Refusal) -> Failure { .refused(refusal) }

    enum Failure: Error, Sendable, Hashable, CustomStringConvertible {
        case refused(Refusal)
        case connectionLost
        case timedOut
        case unreachable
        case notAdmitted
        /// There may be no further connection.
        case noPlace
        case declined
        case notSaved
        case cancelled
        case isStopping
        case documentChanged

        var description: String {
            switch self {
            case .refused(let refusal): "\(refusal)"
            case .connectionLost: "the connection was lost"
            case .timedOut: "no answer in time"
            case .unreachable: "it cannot be reached"
            case .notAdmitted: "the device is not admitted"
            case .noPlace: "there are too many connections"
            case .declined: "the application declined"
            case .notSaved: "the application did not save"
            case .cancelled: "cancelled"
            case .isStopping: "the node stops"
            case .documentChanged: "the document changed"
            }
        }
    }
}

/// An activity of a simulated application.
struct Item: OfferedContent, Hashable {
    struct Manner: Sendable, Hashable {
        var isExclusive = false
        var needsSave = false
        /// Pieces of its document; 0 for none.
        var pieces = 0
        /// Seconds until its offer ends; nil for never.
        var lifetime: Double?
    }

    /// The device and the number of the window there.
    let device: Int
    let window: Int
    /// Rises if the window shows something else.
    let generation: Int
    let manner: Manner
    let expires: Double?
    /// Rises if the content changes.
    var version = 0

    let id: ActivityID

    init(device: Int, window: Int, generation: Int, manner: Manner, expires: Double?) {
        (self.device, self.window, self.generation) = (device, window, generation)
        (self.manner, self.expires) = (manner, expires)
        id = numbered(UInt64(device) << 40 | UInt64(window) << 32 | UInt64(generation))
    }

    var application: String { "application \(window)" }
    var isExclusive: Bool { manner.isExclusive }
    var needsSave: Bool { manner.needsSave }
    var summary: Item { self }
    var payload: Item { self }

    var name: String { "\(letters(device))\(window).\(generation)" }
}

/// The identifier of a number.
func numbered<Subject>(_ number: UInt64) -> Identifier<Subject> {
    let bytes = (0..<Identifier<Subject>.size).map { UInt8(truncatingIfNeeded: $0 < 8 ? number >> (8 * $0) : 0) }
    guard let name = Identifier<Subject>(bytes) else { preconditionFailure("an identifier has 16 bytes") }
    return name
}

extension Identifier {
    var number: UInt64 { bytes.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) } }
}

/// The name of a device: A, B … Z, AA …
func letters(_ number: Int) -> String {
    let last = String(UnicodeScalar(UInt8(65 + number % 26)))
    return number < 26 ? last : letters(number / 26 - 1) + last
}
