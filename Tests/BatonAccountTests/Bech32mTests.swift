// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import BatonAccount

/// The vectors of BIP 350.
@Suite struct Bech32mTests {
    /// Decodes as BIP 350 says; the key's own parser is laxer about case.
    private func isBech32m(_ text: [UInt8]) -> Bool {
        guard
            text.count <= Bech32m.maximumCount, text.allSatisfy({ (33...126).contains($0) }),
            let separator = text.lastIndex(of: UInt8(ascii: "1")), separator > 0,
            text.count - separator - 1 >= Bech32m.checksumCount
        else { return false }
        let hasUpper = text.contains { (65...90).contains($0) }
        if hasUpper, text.contains(where: { (97...122).contains($0) }) { return false }
        let lower = text.map { (65...90).contains($0) ? $0 | 0x20 : $0 }
        var values: [UInt8] = []
        for character in lower[(separator + 1)...] {
            guard let value = Bech32m.value(of: character) else { return false }
            values.append(value)
        }
        return Bech32m.isValid(prefix: lower[..<separator], values: values)
    }

    @Test(arguments: [
        "A1LQFN3A", "a1lqfn3a",
        "an83characterlonghumanreadablepartthatcontainsthetheexcludedcharactersbioandnumber11sg7hg6",
        "abcdef1l7aum6echk45nj3s0wdvt2fg8x9yrzpqzd3ryx",
        "11llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllludsr8",
        "split1checkupstagehandshakeupstreamerranterredcaperredlc445v", "?1v759aa",
    ])
    func validVectors(_ text: String) throws {
        #expect(isBech32m(Array(text.utf8)))
        // The checksum is the one the vector has.
        let lower = Array(text.lowercased().utf8)
        let separator = try #require(lower.lastIndex(of: UInt8(ascii: "1")))
        let values = lower[(separator + 1)...].compactMap(Bech32m.value)
        #expect(Bech32m.checksum(prefix: lower[..<separator], values: values.dropLast(6)) == values.suffix(6))
    }

    @Test(arguments: [
        "\u{20}1xj0phk", "\u{7f}1g6xzxy", "1qyrz8wqd2c9m", "1qyrz8wqd2c9m", "y1b0jsk6g", "lt1igcx5c0", "in1muywd",
        "mm1crxm3i", "au1s5cgom", "M1VUXWEZ", "16plkw9", "1p2gdwpf", "qyrz8wqd2c9m",
        "an84characterslonghumanreadablepartthatcontainsthetheexcludedcharactersbioandnumber11d6pts4",
        // Right for Bech32, wrong for Bech32m.
        "A12UEL5L", "split1checkupstagehandshakeupstreamerranterredcaperred2y9e3w",
    ])
    func invalidVectors(_ text: String) {
        #expect(!isBech32m(Array(text.utf8)))
    }

    @Test func aByteAboveASCIIIsInvalid() {
        #expect(!isBech32m([0x80] + Array("1vctc34".utf8)))
    }
}
