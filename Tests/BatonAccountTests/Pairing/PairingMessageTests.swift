// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import BatonAccount

@Suite("The messages of pairing")
struct PairingMessageTests {
    private static let zeros = [UInt8](repeating: 0, count: 32)
    private static let messages: [PairingMessage] = [
        PairingMessage(.commit, PairingMessage.version + zeros), PairingMessage(.key, zeros + zeros),
        PairingMessage(.open, zeros + zeros + [UInt8](repeating: 1, count: 48)),
        PairingMessage(.welcome, [UInt8](repeating: 2, count: 17)),
        PairingMessage(.welcome, [UInt8](repeating: 2, count: PairingMessage.maximumWelcome)),
        PairingMessage(.done, [UInt8](repeating: 3, count: 17)),
        PairingMessage(.done, [UInt8](repeating: 3, count: 79)), PairingMessage(.end, [2]), PairingMessage(.end, [200]),
    ]

    @Test("Each is read as it was written, a byte at a time too", arguments: messages)
    func reading(message: PairingMessage) throws {
        #expect(try PairingExchangeTests.read(message.encoded, as: message.kind) == message)
        var reader = PairingReader(expecting: [message.kind])
        var read: PairingMessage?
        for byte in message.encoded { read = try withUnsafeBytes(of: byte) { try reader.receive($0) } }
        #expect(read == message)
    }

    @Test("A type that cannot come now is refused behind three bytes, and so is a length of another type")
    func refusing() {
        for message in Self.messages where message.kind != .end {
            let bytes = message.encoded
            let other: PairingMessage.Kind = message.kind == .commit ? .open : .commit
            #expect(throws: PairingError.malformed) { try PairingExchangeTests.read(Array(bytes.prefix(3)), as: other) }
            for size in [0, 1, 2, 16, 49, 114, 65_535] where size != bytes.count - 2 {
                guard message.kind != .welcome || size < 18, message.kind != .done || !(18...80).contains(size) else {
                    continue
                }
                let header = [UInt8(size >> 8), UInt8(size & 255), message.kind.rawValue]
                #expect(throws: PairingError.malformed, "\(message.kind) \(size)") {
                    try PairingExchangeTests.read(header, as: message.kind)
                }
            }
        }
    }

    @Test("Another version is told from another protocol")
    func versions() {
        var body = PairingMessage.version + Self.zeros
        body[14] = UInt8(ascii: "2")
        #expect(throws: PairingError.version) { try PairingInviter(commit: PairingMessage(.commit, body)) }
        body[0] = UInt8(ascii: "B")
        #expect(throws: PairingError.malformed) { try PairingInviter(commit: PairingMessage(.commit, body)) }
    }

    @Test("Digits are six, with spaces anywhere")
    func digits() {
        #expect(Invitation.digits(in: "482 913") == "482913")
        #expect(Invitation.digits(in: " 4 8 2 9 1 3 ") == "482913")
        for text in ["", "48291", "4829133", "48291a", "٤٨٢٩١٣", "-82913", "482,913"] {
            #expect(Invitation.digits(in: text) == nil, "\(text)")
        }
    }
}
