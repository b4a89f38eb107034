// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Testing

@testable import BatonTLS

/// The bounds of a session's memory, each at the bound.
@Suite struct BufferTests {
    @Test(arguments: [23, 24, 25] as [UInt64])
    func ringBehavesLikeAQueue(seed: UInt64) {
        var numbers = SeededGenerator(seed: seed)
        let limit = Int.random(in: 5000...40000, using: &numbers)
        var ring = CiphertextBuffer(limit: limit)
        var model: [UInt8] = []
        var next: UInt8 = 0
        for _ in 0..<600 {
            switch Int.random(in: 0..<4, using: &numbers) {
            case 0, 1:
                let bytes = (0..<Int.random(in: 0...limit / 3, using: &numbers)).map { _ -> UInt8 in
                    next &+= 1
                    return next
                }
                let fits = model.count + bytes.count <= limit
                #expect(bytes.withUnsafeBytes { ring.append($0) } == fits, "seed \(seed)")
                if fits { model += bytes }
            case 2:
                let most = Int.random(in: 0...limit / 2, using: &numbers)
                let got = [UInt8](unsafeUninitializedCapacity: most) { buffer, count in
                    count = ring.read(into: UnsafeMutableRawBufferPointer(buffer))
                }
                #expect(got == Array(model.prefix(most)), "seed \(seed)")
                model.removeFirst(got.count)
            default:
                let front = Array(ring.front)
                #expect(front.isEmpty == model.isEmpty)
                #expect(front.elementsEqual(model.prefix(front.count)), "seed \(seed)")
                let dropped = front.count / 2
                ring.drop(dropped)
                model.removeFirst(dropped)
            }
            #expect(ring.count == model.count && ring.freeSpace == limit - model.count)
        }
    }

    @Test func ringTakesExactlyItsLimit() {
        var ring = CiphertextBuffer(limit: 10000)
        let bytes = [UInt8](repeating: 1, count: 10001)
        #expect(bytes.withUnsafeBytes { ring.append($0) } == false)
        #expect(bytes.dropLast().withUnsafeBytes { ring.append($0) } == true)
        #expect(ring.freeSpace == 0)
        #expect([1].withUnsafeBytes { ring.append($0) } == false)
    }

    @Test func receivedCiphertextIsBounded() throws {
        let pair = try SessionPair(limits: TLSLimits(bufferedInput: 40000)).connected()
        let limit = pair.server.receivableBytes
        #expect(limit == 40000)
        let sent = [UInt8](repeating: 5, count: 100_000)
        try pair.client.write(sent)
        let wire = pair.client.takeOutput(1 << 18)
        try pair.server.give(Array(wire.prefix(limit)))
        #expect(pair.server.receivableBytes == 0)
        let error = #expect(throws: TLSError.self) { try pair.server.give([wire[limit]]) }
        #expect(error?.code == .bufferFull)
        let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 16384, alignment: 16)
        defer { scratch.deallocate() }
        let again = #expect(throws: TLSError.self) {
            try wire.withUnsafeBytes { try pair.server.receive($0, into: { scratch }, deliver: { _ in true }) }
        }
        #expect(again?.code == .bufferFull)
        // Nothing was taken and nothing is lost: the session continues.
        var got = try pair.server.readAll().bytes
        var rest = wire.dropFirst(limit)
        while !rest.isEmpty {
            let piece = rest.prefix(pair.server.receivableBytes)
            try pair.server.give(Array(piece))
            got += try pair.server.readAll().bytes
            rest = rest.dropFirst(piece.count)
        }
        #expect(got == sent)
    }

    @Test func ciphertextToSendIsBounded() throws {
        let limits = TLSLimits(bufferedOutput: 100_000)
        let pair = try SessionPair(limits: limits).connected()
        let most = pair.client.writableBytes
        #expect(most == 6 * 16384)
        let error = #expect(throws: TLSError.self) { try pair.client.write([UInt8](repeating: 1, count: most + 1)) }
        #expect(error?.code == .bufferFull)
        #expect(!pair.client.hasOutput)
        try pair.client.write([UInt8](repeating: 1, count: most))
        #expect(pair.client.pendingOutput <= limits.bufferedOutput)
        #expect(pair.client.writableBytes == 0)
        #expect(throws: TLSError.self) { try pair.client.write([1]) }
        // The close_notify still fits, and everything arrives.
        pair.client.shutdown()
        try pair.server.give(pair.client.takeOutput(1 << 18))
        let (bytes, end) = try pair.server.readAll()
        #expect(bytes.count == most && end == .closed)
    }

    @Test func manySmallRecordsStayBounded() throws {
        let limits = TLSLimits()
        let pair = try SessionPair(limits: limits).connected()
        var written = 0
        while pair.client.writableBytes > 0 {
            try pair.client.write([7])
            written += 1
        }
        #expect(pair.client.pendingOutput <= limits.bufferedOutput)
        #expect(written > 10_000)
        var got = 0
        while pair.client.hasOutput {
            try pair.server.give(pair.client.takeOutput(1 << 16))
            got += try pair.server.readAll().bytes.count
        }
        #expect(got == written)
    }

    @Test func boundsHaveAFloor() {
        let limits = TLSLimits(bufferedInput: 1, bufferedOutput: -1)
        #expect(limits.bufferedInput == TLSLimits.minimumBuffer)
        #expect(limits.bufferedOutput == TLSLimits.minimumBuffer)
    }
}
