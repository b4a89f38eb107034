// SPDX-License-Identifier: Apache-2.0

import Baton
import Testing

@testable import BatonCLI

@Suite("Ranges of a document")
struct ByteRangeTests {
    @Test(
        "START-END and START- are ranges; what is none, or is empty, is not",
        arguments: [
            ("0-65536", 0, 65536), ("7-", 7, UInt64.max), ("0-18446744073709551615", 0, .max),
        ] as [(String, UInt64, UInt64)])
    func reads(text: String, start: UInt64, end: UInt64) {
        let range = ByteRange(text)
        #expect(range?.start == start)
        #expect(range?.end == end)
    }

    @Test(arguments: ["", "-", "5", "-5", "5-5", "6-5", "1-2-3", "a-b", "0-18446744073709551616", "0x1-5", " 1-2"])
    func refuses(text: String) {
        #expect(ByteRange(text) == nil)
    }

    @Test("What is asked for at once ends where chunks do, so that none is sent for two of them")
    func pieces() {
        let mebibyte: UInt64 = 1 << 20
        #expect(
            Array(NodeClient.pieces(of: 5 * mebibyte + 3..<40 * mebibyte + 1)) == [
                5 * mebibyte + 3..<16 * mebibyte, 16 * mebibyte..<32 * mebibyte, 32 * mebibyte..<40 * mebibyte + 1,
            ])
        #expect(Array(NodeClient.pieces(of: UInt64.max - 1..<UInt64.max)) == [UInt64.max - 1..<UInt64.max])
        let open = Array(NodeClient.pieces(of: 0..<UInt64.max).prefix(2))
        #expect(open == [0..<16 * mebibyte, 16 * mebibyte..<32 * mebibyte])
    }
}
