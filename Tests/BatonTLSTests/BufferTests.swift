// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Testing

@testable import BatonTLS

/// The bounds of a session's memory, each at the bound.
@Suite struct BufferTests {
    @Test(arguments: [23, 24, 25] as [UInt64])
    func bufferBehavesLikeAQueue(seed: UInt64) {
        var numbers = SeededGenerator(seed: seed)
        let limit = Int.random(in: 5000...40000, using: &numbers)
        var buffer = CiphertextBuffer(limit: limit)
        var model: [UInt8] = []
        var next: UInt8 = 0
        for _ in 0..<600 {
            switch Int.random(in: 0..<3, using: &numbers) {
            case 0, 1:
                let bytes = (0..<Int.random(in: 0...limit / 3, using: &numbers)).map { _ -> UInt8 in
                    next &+= 1
                    return next
                }
                let fits = model.count + bytes.count <= limit
                #expect(bytes.withUnsafeBytes { buffer.append($0) } == fits, "seed \(seed)")
                if fits { model += bytes }
            default:
                let most = Int.random(in: 0...limit / 2, using: &numbers)
                let got = [UInt8](unsafeUninitializedCapacity: most) { room, count in
                    count = buffer.read(into: UnsafeMutableRawBufferPointer(room))
                }
                #expect(got == Array(model.prefix(most)), "seed \(seed)")
                model.removeFirst(got.count)
            }
            #expect(buffer.count == model.count && buffer.freeSpace == limit - model.count)
        }
    }

    @Test func bufferTakesExactlyItsLimit() {
        var buffer = CiphertextBuffer(limit: 10000)
        let bytes = [UInt8](repeating: 1, count: 10001)
        #expect(bytes.withUnsafeBytes { buffer.append($0) } == false)
        #expect(bytes.dropLast().withUnsafeBytes { buffer.append($0) } == true)
        #expect(buffer.freeSpace == 0)
        #expect([1].withUnsafeBytes { buffer.append($0) } == false)
    }

    @Test func receivedCiphertextIsBounded() throws {
        let pair = try SessionPair().connected()
        let limit = pair.server.receivableBytes
        #expect(limit == TLSLimits.bufferedInput)
        let sent = (0..<300_000).map { UInt8(truncatingIfNeeded: $0) }
        var wire: [UInt8] = []
        for half in [sent[..<150_000], sent[150_000...]] {
            try pair.client.write(Array(half))
            wire += pair.client.takeOutput(1 << 18)
        }
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
        let pair = try SessionPair().connected()
        let most = pair.client.writableBytes
        #expect(most == 17 * 16384)
        let error = #expect(throws: TLSError.self) { try pair.client.write([UInt8](repeating: 1, count: most + 1)) }
        #expect(error?.code == .bufferFull)
        #expect(!pair.client.hasOutput)
        try pair.client.write([UInt8](repeating: 1, count: most))
        #expect(pair.client.pendingOutput <= TLSLimits.bufferedOutput)
        #expect(pair.client.writableBytes == 0)
        #expect(throws: TLSError.self) { try pair.client.write([1]) }
        // The close_notify still fits, and everything arrives.
        pair.client.shutdown()
        while pair.client.hasOutput { try pair.server.give(pair.client.takeOutput(1 << 18)) }
        let (bytes, end) = try pair.server.readAll()
        #expect(bytes.count == most && end == .closed)
    }

    @Test func manySmallRecordsStayBounded() throws {
        let pair = try SessionPair().connected()
        var written = 0
        while pair.client.writableBytes > 0 {
            try pair.client.write([7])
            written += 1
        }
        #expect(pair.client.pendingOutput <= TLSLimits.bufferedOutput)
        #expect(written > 10_000)
        var got = 0
        while pair.client.hasOutput {
            try pair.server.give(pair.client.takeOutput(1 << 16))
            got += try pair.server.readAll().bytes.count
        }
        #expect(got == written)
    }
}
