// SPDX-License-Identifier: Apache-2.0

import SystemPackage

@testable import BatonAccount

/// The file that keeps the account key under a passphrase.
enum SealedKeyTarget: FuzzTarget {
    static let name = "sealed-key"
    static let maximumLength = 100

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        guard let sealed = try? SealedAccountKey(decoding: Array(bytes), path: "account-key") else { return }
        expect(sealed.encoded == Array(bytes), "the key was written in another form than it was read in")
    }

    static func seeds() -> [[UInt8]] {
        let header = Array("baton sealed account key/1".utf8)
        let content = Array(UInt8(0)..<48)
        func file(_ cost: [UInt8]) -> [UInt8] { header + cost + content }
        return [
            file([17, 0, 0, 0, 8, 0, 0, 0, 3]), file([21, 0, 0, 0, 8, 0, 0, 0, 3]),
            file([14, 0, 0, 0, 9, 0, 0, 0, 16]), file([17, 0, 0, 0, 8, 0, 0, 0, 3]) + [0], header, [],
        ]
    }
}
