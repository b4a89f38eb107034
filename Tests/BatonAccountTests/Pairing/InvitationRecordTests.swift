// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonAccount

@Suite("The record of an invitation")
struct InvitationRecordTests {
    private let record: InvitationRecord

    init() throws {
        record = InvitationRecord(
            port: 24748,
            addresses: [try #require(NetworkAddress("192.168.1.7")), try #require(NetworkAddress("fe80::1"))])
    }

    @Test("It is written and read")
    func roundTrip() throws {
        #expect(record.strings[0] == Array("v=1".utf8))
        #expect(record.strings[1].prefix(9) == [0x61, 0x3d, 0x60, 0xac, 2, 4, 192, 168, 1])
        #expect(InvitationRecord(decoding: record.strings) == record)
        #expect(InvitationRecord(decoding: record.strings + [Array("z=later".utf8)]) == record)
    }

    @Test("A record that is cut, longer, of another version, or without an address is none")
    func refusals() throws {
        for count in 0..<record.strings[1].count {
            #expect(InvitationRecord(decoding: [record.strings[0], Array(record.strings[1].prefix(count))]) == nil)
        }
        #expect(InvitationRecord(decoding: [record.strings[0], record.strings[1] + [0]]) == nil)
        #expect(InvitationRecord(decoding: [Array("v=2".utf8), record.strings[1]]) == nil)
        #expect(InvitationRecord(decoding: [record.strings[1], record.strings[0]]) == nil)
        #expect(InvitationRecord(decoding: []) == nil)
        #expect(InvitationRecord(decoding: InvitationRecord(port: 24748, addresses: []).strings) == nil)
        #expect(InvitationRecord(decoding: InvitationRecord(port: 80, addresses: record.addresses).strings) == nil)
        // This host itself, and the same address twice.
        let loopback = Array("a=".utf8) + [0x60, 0xac, 1, 4, 127, 0, 0, 1]
        #expect(InvitationRecord(decoding: [record.strings[0], loopback]) == nil)
        let twice = Array("a=".utf8) + [0x60, 0xac, 2, 4, 10, 0, 0, 1, 4, 10, 0, 0, 1]
        #expect(InvitationRecord(decoding: [record.strings[0], twice]) == nil)
    }
}
