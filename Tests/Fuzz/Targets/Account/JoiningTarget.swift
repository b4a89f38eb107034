// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

@testable import BatonAccount

/// Records that a joining device opens with the account key itself, under lists that it does not know.
///
/// The first byte of an input chooses the meaning of the rest. It is a raw record from a stranger, or salt and plain
/// text. A device of the account seals and signs that under the list that the salt names, in the generation of the
/// second byte.
enum JoiningTarget: FuzzTarget {
    static let name = "joining"
    static let maximumLength = 1300

    private static let opener = JoiningOpener(
        secrets: AdvertisementTarget.Fixture.shared.secrets,
        ownDevice: DeviceID(ed25519PublicKey: [UInt8](repeating: 1, count: 32)))

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        var input = Input(bytes)
        let kind = input.byte()
        guard !kind.isMultiple(of: 2) else {
            let opened = try? opener.open(input.remainder())
            return expect(opened == nil, "a record that nobody sealed was opened")
        }
        let fixture = AdvertisementTarget.Fixture.shared
        let generation = UInt32(input.byte()) % (JoiningOpener.generations.upperBound + 1)
        let size = AdvertisementSeal.saltCount + AdvertisementCodec.size
        let content = Array((input.remainder() + [UInt8](repeating: 0, count: size)).prefix(size))
        let salt = Array(content.prefix(AdvertisementSeal.saltCount))
        var plain = Array(content.dropFirst(AdvertisementSeal.saltCount))
        plain.replaceSubrange(1..<33, with: fixture.identity.publicKey)
        let list =
            generation == 0
            ? nil : JoiningSalt.digest(in: salt, joining: fixture.secrets.joiningKey(generation: generation))
        let keys = fixture.secrets.keys(generation: generation, list: list)
        let blob = try AdvertisementSeal.seal(
            plain: plain, signature: fixture.identity.sign(AdvertisementSeal.signedMessage(salt: salt, plain: plain)),
            salt: salt, key: keys.advertisement)
        do throws(AdvertisementError) {
            let opened = try opener.open(AdvertisementTarget.record(AdvertisementTXT.strings(of: blob)))
            expect(opened.advertisement.device == fixture.identity.id, "the advertisement is another device's")
            expect(opened.keys.id == keys.id, "other keys than it was sealed with")
        } catch {
            expect(error.isByMember, "what a member sealed was taken for a stranger's: \(error)")
        }
    }

    static func seeds() throws -> [[UInt8]] {
        let advertisements = try AdvertisementTarget.seeds()
        let records = advertisements.filter { $0.first == 0 }.map { [0] + $0.dropFirst() }
        let salt = [UInt8](repeating: 5, count: AdvertisementSeal.saltCount)
        let sealed = advertisements.filter { $0.first == 2 }.enumerated().map { number, plain in
            [1, UInt8(number)] + salt + plain.dropFirst()
        }
        return records + sealed
    }
}
