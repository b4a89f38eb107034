// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import BatonTransport
import Testing

@testable import BatonNode
@testable import BatonTLS

/// A listener to everything that two ends of a connection say to each other.
final class Wiretap {
    private(set) var heard: [UInt8] = []

    /// Carries bytes from the dialling end to the other, through the channel that nodes use or through none.
    func carry(_ payload: [UInt8], from dialer: TLSContext, to acceptor: TLSContext, isSealed: Bool) throws {
        let plain = PlainChannel(peer: .localUser(0))
        let near: any Channel =
            isSealed
            ? TLSChannel(
                try TLSSession(client: dialer, serverName: "a.baton.invalid", expectedPeer: acceptor.deviceID),
                isClient: true) : plain
        let far: any Channel = isSealed ? TLSChannel(try TLSSession(server: acceptor), isClient: false) : plain
        try near.start()
        var waiting = payload[...]
        var arrived: [UInt8] = []
        while true {
            let there = try say(by: near) { space in
                let part = waiting.prefix(space.count)
                space.copyBytes(from: part)
                waiting = waiting.dropFirst(part.count)
                return part.count
            }
            try there.withUnsafeBytes { try far.decode($0, into: \.self, deliver: { arrived += $0 }) }
            let back = try say(by: far) { _ in 0 }
            try back.withUnsafeBytes { try near.decode($0, into: \.self, deliver: { _ in }) }
            if there.isEmpty, back.isEmpty { break }
        }
        #expect(arrived == payload)
    }

    private func say(
        by channel: any Channel, from next: (UnsafeMutableRawBufferPointer) -> Int
    ) throws -> [UInt8] {
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
        defer { space.deallocate() }
        let count = try channel.encode(into: space, from: next)
        heard += space[..<count]
        return Array(space[..<count])
    }
}
