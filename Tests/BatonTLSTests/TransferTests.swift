// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import COpenSSL
import Testing

@testable import BatonTLS

/// Bytes after the handshake arrive whole and in order, are bounded, and are never cut silently.
@Suite struct TransferTests {
    /// Sends all of `total` bytes each way at once, in pieces of random size, and compares digests.
    private func exchange(_ pair: SessionPair, total: Int, seed: UInt64) throws {
        var numbers = SeededGenerator(seed: seed)
        let block = (0..<(1 << 16) + 777).map { _ in UInt8.random(in: 0...255, using: &numbers) }
        let ends = [pair.client, pair.server]
        var sent = [0, 0]
        var received = [0, 0]
        let sums = [Checksum(), Checksum()]
        let wanted = [Checksum(), Checksum()]
        let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 16384, alignment: 16)
        let wire = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
        defer {
            scratch.deallocate()
            wire.deallocate()
        }
        while received != [total, total] {
            for side in 0..<2 {
                let (from, to) = (ends[side], ends[1 - side])
                let size = min(Int.random(in: 1...block.count, using: &numbers), total - sent[side], from.writableBytes)
                if size > 0 {
                    try block.withUnsafeBytes { block in
                        let piece = UnsafeRawBufferPointer(rebasing: block.prefix(size))
                        try from.write(piece)
                        wanted[side].add(piece)
                    }
                    sent[side] += size
                }
                let most = Int.random(in: 1...wire.count, using: &numbers)
                let count = from.nextOutput(into: UnsafeMutableRawBufferPointer(rebasing: wire.prefix(most)))
                let part = UnsafeRawBufferPointer(rebasing: wire.prefix(count))
                if Bool.random(using: &numbers) {
                    try to.receive(part)
                    while case .bytes(let count) = try to.read(into: scratch) {
                        sums[side].add(UnsafeRawBufferPointer(rebasing: scratch.prefix(count)))
                        received[side] += count
                    }
                } else {
                    _ = try to.receive(
                        part, into: { scratch },
                        deliver: {
                            sums[side].add($0)
                            received[side] += $0.count
                            return true
                        })
                }
            }
        }
        for side in 0..<2 { #expect(sums[side].value == wanted[side].value) }
    }

    @Test func sixtyFourMebibytesBothWays() throws {
        try exchange(try SessionPair().connected(), total: 64 << 20, seed: 20)
    }

    @Test func keysAreUpdatedOnTheWay() throws {
        var limits = TLSLimits()
        limits.keyUpdateInterval = 100_000
        let pair = try SessionPair(limits: limits).connected()
        let before = pair.client.keyUpdates
        try exchange(pair, total: 4 << 20, seed: 21)
        // 100,000 bytes are seven whole records, and no record counts as less than a full one.
        let least = (4 << 20) / (7 * 16384)
        #expect(before == 0)
        #expect(pair.client.keyUpdates >= least)
        #expect(pair.server.keyUpdates >= least)
    }

    /// OpenSSL 3.0 accepts any number of them, at some 10 µs each, before it returns the requested data.
    @Test("A flood of key updates without data ends the session")
    func keyUpdatesInAFlood() throws {
        for isCounted in [true, false] {
            var limits = TLSLimits()
            if !isCounted { limits.postHandshakeMessages = .max }
            let pair = try SessionPair(limits: limits).connected()
            func update(times: Int) throws {
                for _ in 0..<times {
                    #expect(SSL_key_update(pair.client.pointer, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
                    #expect(SSL_do_handshake(pair.client.pointer) == 1)
                }
                try pair.server.give(pair.client.takeOutput(1 << 18))
            }
            let bound = TLSLimits().postHandshakeMessages
            // The allowed number of messages, then data, and the same once more.
            for _ in 0..<2 {
                try update(times: bound)
                try pair.client.write([UInt8](repeating: 1, count: bound * TLSLimits.recordPayload / 2))
                try pair.server.give(pair.client.takeOutput(1 << 20))
                try pair.client.write([UInt8](repeating: 1, count: bound * TLSLimits.recordPayload / 2))
                #expect(try pair.server.readAll().bytes.count == bound * TLSLimits.recordPayload / 2)
                try pair.server.give(pair.client.takeOutput(1 << 20))
                #expect(try pair.server.readAll().bytes.count == bound * TLSLimits.recordPayload / 2)
            }
            try update(times: bound + 1)
            if isCounted {
                let error = #expect(throws: TLSError.self) { _ = try pair.server.readAll() }
                #expect(error?.code == .protocolViolation)
            } else {
                #expect(try pair.server.readAll().bytes.isEmpty)
            }
        }
    }

    @Test func keyIsUpdatedAfterExactlyTheInterval() throws {
        var limits = TLSLimits()
        limits.keyUpdateInterval = 3 * 16384
        let pair = try SessionPair(limits: limits).connected()
        try pair.client.write([UInt8](repeating: 1, count: 16384 * 2))
        #expect(pair.client.keyUpdates == 0)
        try pair.client.write([1])  // a small record counts as a full one
        #expect(pair.client.keyUpdates == 0)
        try pair.client.write([UInt8](repeating: 1, count: 16384 * 3 + 1))
        #expect(pair.client.keyUpdates == 2)
        converse(pair.client, pair.server)
        #expect(try pair.server.readAll().bytes.count == 16384 * 5 + 2)
        #expect(TLSLimits().keyUpdateInterval == 64 << 30)
    }

    @Test func closeNotify() throws {
        let pair = try SessionPair().connected()
        try pair.client.write([1, 2, 3])
        pair.client.shutdown()
        pair.client.shutdown()
        let late = #expect(throws: TLSError.self) { try pair.client.write([4]) }
        #expect(late?.code == .notReady)
        #expect(pair.client.writableBytes == 0)
        try pair.server.give(pair.client.takeOutput(1 << 16))
        pair.server.receiveEnd()
        let (bytes, end) = try pair.server.readAll()
        #expect(bytes == [1, 2, 3])
        #expect(end == .closed)
        // The other direction stays open.
        try pair.server.write([5, 6])
        try pair.client.give(pair.server.takeOutput(1 << 16))
        #expect(try pair.client.readAll().bytes == [5, 6])
    }

    @Test func endWithoutCloseNotifyIsTruncation() throws {
        let pair = try SessionPair().connected()
        try pair.client.write([1, 2, 3])
        try pair.server.give(pair.client.takeOutput(1 << 16))
        pair.server.receiveEnd()
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16, alignment: 1)
        defer { buffer.deallocate() }
        // Whole records are delivered first.
        #expect(try pair.server.read(into: buffer) == .bytes(3))
        for _ in 0..<2 {
            let error = #expect(throws: TLSError.self) { try pair.server.read(into: buffer) }
            #expect(error?.code == .truncated)
        }
    }

    @Test func endInTheMiddleOfARecordOrOfTheHandshakeIsTruncation() throws {
        let pair = try SessionPair().connected()
        try pair.client.write([UInt8](repeating: 9, count: 1000))
        try pair.server.give(pair.client.takeOutput(500))
        #expect(try pair.server.readAll().end == .incomplete)
        pair.server.receiveEnd()
        #expect(throws: TLSError.self) { try pair.server.readAll() }
        #expect(pair.server.failure?.code == .truncated)

        let young = try SessionPair()
        _ = try young.client.handshake()
        young.client.receiveEnd()
        #expect(throws: TLSError.self) { try young.client.handshake() }
        #expect(young.client.failure?.code == .truncated)
    }

    @Test func garbageInsteadOfAHandshake() throws {
        let context = try TestAuthority().device().context()
        var numbers = SeededGenerator(seed: 22)
        var inputs: [[UInt8]] = [
            Array("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8), [UInt8](repeating: 0, count: 100),
            [0x16, 3, 1, 0xFF, 0xFF] + [UInt8](repeating: 1, count: 70000), [0x16, 3, 3, 0, 0],
            [0x15, 3, 3, 0, 2, 2, 40],
        ]
        for _ in 0..<200 {
            let count = Int.random(in: 1...600, using: &numbers)
            inputs.append((0..<count).map { _ in UInt8.random(in: 0...255, using: &numbers) })
        }
        for input in inputs {
            let server = try TLSSession(server: context)
            try server.give(input)
            server.receiveEnd()
            #expect(throws: TLSError.self) { try server.handshake() }
            #expect(server.peerDeviceID == nil)
        }
    }

    @Test func everyFlippedByteOfAHelloOrRecordIsSurvived() throws {
        let account = try TestAuthority()
        let (one, other) = (try account.device().context(), try account.device().context())
        let fresh = try SessionPair(client: one, server: other)
        _ = try fresh.client.handshake()
        let hello = fresh.client.takeOutput(1 << 16)
        for index in hello.indices {
            let server = try TLSSession(server: other)
            var damaged = hello
            damaged[index] ^= 0x55
            try server.give(damaged)
            // A damaged ClientHello may still be valid. The session must either continue or throw a TLSError.
            do { #expect(try !server.handshake()) } catch { #expect(error.code != .library) }
        }
        let pair = try SessionPair(client: one, server: other).connected()
        try pair.client.write([UInt8](repeating: 3, count: 100))
        var record = pair.client.takeOutput(1 << 16)
        record[record.count - 1] ^= 1
        try pair.server.give(record)
        #expect(throws: TLSError.self) { try pair.server.readAll() }
        #expect(pair.server.failure?.code == .protocolViolation)
        try pair.client.give(pair.server.takeOutput(1 << 16))
        #expect(throws: TLSError.self) { try pair.client.readAll() }
        #expect(pair.client.failure?.alert == TLSAlert.badRecordMAC)
    }

    @Test func theStopOfADeliveryKeepsTheRest() throws {
        let pair = try SessionPair().connected()
        let sent = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 / 3) }
        try pair.client.write(sent)
        pair.client.shutdown()
        let wire = pair.client.takeOutput(1 << 18)
        let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 16384, alignment: 16)
        defer { scratch.deallocate() }
        var got: [UInt8] = []
        var result = try wire.withUnsafeBytes { wire in
            try pair.server.receive(
                wire, into: { scratch },
                deliver: {
                    got += $0
                    return false
                })
        }
        #expect(result == .bytes(0))
        #expect(got.count == 16384)
        while result == .bytes(0) {
            result = try pair.server.receive(
                UnsafeRawBufferPointer(start: nil, count: 0), into: { scratch },
                deliver: {
                    got += $0
                    return got.count < 40000
                })
            if got.count >= 40000 { break }
        }
        got += try pair.server.readAll().bytes
        #expect(got == sent)
        #expect(try pair.server.readAll().end == .closed)
    }

    @Test func emptyPiecesAreHarmless() throws {
        let pair = try SessionPair().connected()
        try pair.client.write([])
        #expect(!pair.client.hasOutput)
        #expect(try pair.client.read(into: UnsafeMutableRawBufferPointer(start: nil, count: 0)) == .bytes(0))
        try pair.client.give([])
        #expect(pair.client.takeOutput(1) == [])
    }
}

/// SHA-256 over everything that is added, in order.
private final class Checksum {
    private let context = EVP_MD_CTX_new()

    init() {
        EVP_DigestInit_ex(context, EVP_sha256(), nil)
    }

    deinit {
        EVP_MD_CTX_free(context)
    }

    func add(_ bytes: UnsafeRawBufferPointer) {
        EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
    }

    var value: [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        EVP_DigestFinal_ex(context, &digest, nil)
        return digest
    }
}
