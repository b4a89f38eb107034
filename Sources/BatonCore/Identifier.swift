// SPDX-License-Identifier: Apache-2.0

/// 16 bytes that name one thing, written as 32 hexadecimal digits. `Subject` says what, so that a claim's identifier is
/// never taken for an activity's.
package struct Identifier<Subject>: Sendable, Hashable, CustomStringConvertible {
    /// Bytes of an identifier.
    package static var size: Int { 16 }

    package let bytes: [UInt8]

    /// - Returns: nil unless there are exactly ``size`` bytes.
    package init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.size else { return nil }
        self.bytes = Array(bytes)
    }

    /// A new one, at random. The core makes none itself: drivers do, so that a run of the core can be repeated.
    package init() {
        bytes = (0..<Self.size).map { _ in UInt8.random(in: 0...255) }
    }

    package var description: String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

/// Subjects of identifiers.
package enum Named {
    package enum Activity {}
    package enum Claim {}
    package enum Handoff {}
    package enum Offer {}
}

/// Names an activity, the same on every device.
package typealias ActivityID = Identifier<Named.Activity>
/// Names a claim; only its holder was told.
package typealias ClaimID = Identifier<Named.Claim>
/// Names one offer of an activity. An application may offer the same activity again after the first offer ended.
package typealias OfferID = Identifier<Named.Offer>
/// Names a handoff on the continuing device, to the application that asked for it.
package typealias HandoffID = Identifier<Named.Handoff>
