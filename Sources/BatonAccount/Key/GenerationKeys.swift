// SPDX-License-Identifier: Apache-2.0

/// The keys that all devices of an account hold until one is revoked; a revocation begins the next generation.
package struct GenerationKeys: Sendable, Equatable {
    /// How many bytes each key has.
    static let keyCount = 32

    /// Which generation, and under which list.
    package let id: GenerationID

    /// `K_adv[g]`: opens and seals advertisements.
    package let advertisement: SecretBytes

    /// `K_gate[g]`: makes and checks the gate's tokens.
    package let gate: SecretBytes

    /// `K_join[g]`: hides the list's digest in the salt of advertisements; nil for generation 0.
    let joining: SecretBytes?

    /// The generation's number, from 0.
    package var generation: UInt32 { id.number }
}

/// Which keys: the number of a generation, and the list that began it.
package struct GenerationID: Sendable, Hashable, CustomStringConvertible {
    /// The generation's number, from 0.
    package let number: UInt32

    /// The list that began it; nil for generation 0, which no list began.
    package let list: ListDigest?

    /// `2/0123456789abcdef`, or `0`.
    package var description: String { list.map { "\(number)/\($0)" } ?? "\(number)" }

    /// The order in which a device prefers them: newer first, then the lower digest, so that all devices that hold the
    /// same lists seal with the same keys.
    func precedes(_ other: GenerationID) -> Bool {
        number != other.number ? number > other.number : list.map(\.rawValue) ?? 0 < other.list.map(\.rawValue) ?? 0
    }
}

extension GenerationKeys {
    /// The keys in one piece: K_adv, K_gate and, from generation 1 on, K_join; 64 or 96 bytes.
    package var concatenated: SecretBytes {
        let parts = [advertisement, gate] + (joining.map { [$0] } ?? [])
        return SecretBytes(count: parts.count * Self.keyCount) { target in
            for (index, part) in parts.enumerated() {
                part.withUnsafeBytes { target[(index * Self.keyCount)...].copyBytes(from: $0) }
            }
        }
    }

    /// The keys from ``concatenated``; nil for another count.
    package init?(id: GenerationID, concatenated bytes: SecretBytes) {
        guard bytes.count == (id.list == nil ? 2 : 3) * Self.keyCount else { return nil }
        func part(_ index: Int) -> SecretBytes {
            bytes.withUnsafeBytes {
                let start = index * Self.keyCount
                return SecretBytes(copying: UnsafeRawBufferPointer(rebasing: $0[start..<(start + Self.keyCount)]))
            }
        }
        self.init(id: id, advertisement: part(0), gate: part(1), joining: id.list == nil ? nil : part(2))
    }
}
