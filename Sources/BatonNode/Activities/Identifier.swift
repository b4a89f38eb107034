// SPDX-License-Identifier: Apache-2.0

/// 16 random bytes that name one thing, written as 32 hexadecimal digits. `Subject` says what, so that a claim's
/// identifier is never taken for an activity's.
struct Identifier<Subject>: Sendable, Hashable, CustomStringConvertible {
    /// Bytes of an identifier.
    static var size: Int { 16 }

    let bytes: [UInt8]

    /// A new one.
    init() {
        var generator = SystemRandomNumberGenerator()
        let words = (0..<Self.size / 8).map { _ in generator.next() }
        bytes = words.withUnsafeBytes(Array.init)
    }

    /// - Returns: `nil` unless there are exactly ``size`` bytes.
    init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.size else { return nil }
        self.bytes = Array(bytes)
    }

    var description: String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

/// Names an activity, the same on every device.
typealias ActivityID = Identifier<OfferedActivity>
/// Names a claim; only its holder was told.
typealias ClaimID = Identifier<Claim>
/// Names a handoff on the continuing device, to the application that asked for it.
typealias HandoffID = Identifier<Handoff>
