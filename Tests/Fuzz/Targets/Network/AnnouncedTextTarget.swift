// SPDX-License-Identifier: Apache-2.0

@testable import BatonDiscovery
@testable import BatonProtocol

/// Multicast DNS responses and queries, as anyone on the link can send them.
enum AnnouncedTextTarget: FuzzTarget {
    static let name = "announced-text"
    static let maximumLength = 1500

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        let texts = AnnouncedText.all(in: bytes, type: "_baton._tcp")
        let unicast = AnnouncedText.all(in: bytes, type: "_baton._tcp", isUnicast: true)
        expect(texts.isEmpty || texts == unicast, "a response is read in two ways")
        expect(unicast.count <= 64, "\(unicast.count) records were read")
        let asked = MulticastQuery.instances(in: bytes, type: "_baton._tcp")
        expect(asked.count <= 64, "\(asked.count) questions were read")
        expect(texts.count <= 64, "\(texts.count) records were read")
        for text in texts {
            expect(text.text.count <= TextRecord.maximumLength, "a record of \(text.text.count) bytes was read")
            // Bytes that are not UTF-8 become up to three times as many.
            expect(text.instance.utf8.count <= 3 * 63, "a label of \(text.instance.utf8.count) bytes was read")
        }
    }

    static func seeds() throws -> [[UInt8]] {
        func label(_ text: String) -> [UInt8] { [UInt8(text.utf8.count)] + text.utf8 }
        let header: [UInt8] = [0, 0, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0]
        let name = label("abcdefghijk2") + label("_baton") + label("_tcp") + label("local") + [0]
        let data: [UInt8] = [0, 16, 0x80, 1, 0, 0, 0x11, 0x94, 0, 4, 3] + Array("v=1".utf8)
        let compressed = label("abcdefghijk3") + [0xC0, 25] + data
        let two: [UInt8] = [0, 0, 0x84, 0, 0, 0, 0, 2, 0, 0, 0, 0]
        return [
            header + name + data, two + name + data + compressed, header + [0xC0, 12] + data, header + name,
            header + label("abcdefghijk2") + [0xC0, 40] + data, header, [],
            MulticastQuery.packet(type: "_baton._tcp", instance: "abcdefghijk2"),
            [0, 0, 0x84, 0, 0, 1, 0, 1, 0, 0, 0, 0] + name + [0, 16, 0, 1] + name + data,
        ]
    }
}
