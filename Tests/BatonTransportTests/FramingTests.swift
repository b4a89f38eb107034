// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Testing

@testable import BatonTransport

@Suite("Stream.read(framing:)", .timeLimit(.minutes(3)))
struct FramingTests {
    private static let size = 70_000

    private func isAligned(_ buffer: Buffer, _ byte: UInt = 2) -> Bool {
        (UInt(bitPattern: buffer.bytes.baseAddress) + byte).isMultiple(of: UInt(Buffer.pageSize))
    }

    @Test("A record is in one piece, with the chosen byte at the start of a page, and buffers are reused")
    func records() async throws {
        let pair = try await ConnectedPair()
        let (asker, answerer) = try await pair.stream()
        let content = pattern(40 * Self.size + 123)
        let writing = Task {
            for start in stride(from: 0, to: content.count, by: 10_007) {
                try await asker.write(Buffer(copying: content[start..<min(start + 10_007, content.count)]))
            }
            await asker.finish()
        }
        var all: [UInt8] = []
        var buffers: Set<ObjectIdentifier> = []
        var kept: [Buffer] = []
        var buffer: Buffer?
        while true {
            let distance = (Self.size - all.count % Self.size) % Self.size
            let framing = Framing(recordSize: Self.size, alignedByte: 2, distance: distance)
            buffer = try await answerer.read(atLeast: Self.size, reusing: buffer, framing: framing)
            guard let buffer else { break }
            // Bytes that came before the framing are in buffers without it: a small one and a large one.
            let isWhole = all.count >= 1 << 20 + 32 << 10 && all.count < 40 * Self.size
            if isWhole, distance == 0 {
                #expect(buffer.count == Self.size && isAligned(buffer))
                buffers.insert(ObjectIdentifier(buffer))
                kept.append(buffer)
            }
            all.append(contentsOf: buffer.bytes)
        }
        #expect(all == content)
        #expect(kept.count >= 20 && buffers.count < kept.count)
        try await writing.value
        await pair.close()
    }

    @Test("A record of another size shifts later ones, until the reader states their position")
    func shifted() async throws {
        let pair = try await ConnectedPair()
        let (asker, answerer) = try await pair.stream()
        // The third record is short.
        let content = pattern(2 * Self.size + 18 + 3 * Self.size)
        var taken = 0
        var buffer: Buffer?
        for (count, distance) in [(2 * Self.size, 0), (18, 0), (Self.size, 0), (Self.size, 0), (Self.size, 0)] {
            var start = taken
            while start < taken + count {
                let end = min(start + 9_001, taken + count)
                try await asker.write(Buffer(copying: content[start..<end]))
                start = end
            }
            try await asker.drained()
            let end = taken + count
            while taken < end {
                let framing = Framing(
                    recordSize: Self.size, alignedByte: 2, distance: taken == end - count ? distance : end - taken)
                let bound = min(Self.size, end - taken)
                buffer = try await answerer.read(atLeast: bound, reusing: buffer, framing: framing)
                let received = try #require(buffer)
                #expect(Array(received.bytes) == Array(content[taken..<taken + received.count]))
                // Part of the record after the short one may have come before the framing was set again.
                if taken >= 3 * Self.size + 18 { #expect(received.count == Self.size && isAligned(received)) }
                taken += received.count
            }
        }
        await pair.close()
    }

    @Test("The bytes to the end of a record are counted from any offset")
    func room() {
        let layout = Framing(recordSize: 100, alignedByte: 2, distance: 1030)
        for (position, room) in [(1030, 100), (1031, 99), (1129, 1), (1130, 100), (1000, 30), (1029, 1), (930, 100)] {
            #expect(layout.bytesToRecordEnd(at: position) == room, "\(position)")
        }
    }

    @Test("Only a buffer with the right size and alignment is reused")
    func fit() {
        let layout = Framing(recordSize: 100, alignedByte: 2, distance: 0)
        #expect(layout.fits(Buffer(capacity: 100, alignedByte: 2)))
        #expect(!layout.fits(Buffer(capacity: 99, alignedByte: 2)))
        #expect(!layout.fits(Buffer(capacity: 100, alignedByte: 3)))
        #expect(!layout.fits(Buffer(capacity: 1 << 20)))
    }

    @Test("The memory of a buffer is aligned as requested", arguments: [0, 1, 2, 4095, 4096, 10_000])
    func memory(_ byte: Int) {
        let buffer = Buffer(capacity: 20_000, alignedByte: byte)
        #expect((UInt(bitPattern: buffer.writable.baseAddress) + UInt(byte)).isMultiple(of: 4096))
        #expect(buffer.writable.count == 20_000)
        buffer.writable.initializeMemory(as: UInt8.self, repeating: 7)
    }

    @Test("Buffers that share memory lie in it one behind the other, and it is let go with the last of them")
    func shared() throws {
        final class Owner {}
        let size = Buffer.size(capacity: 10_000, alignedByte: 8)
        #expect(size == 4 * Buffer.pageSize)
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 3 * size + 1, alignment: Buffer.pageSize)
        defer { memory.deallocate() }
        weak var owner: Owner?
        var buffers: [Buffer] = []
        do {
            let made = Owner()
            owner = made
            buffers = Buffer.buffers(in: memory, of: made, capacity: 10_000, alignedByte: 8)
        }
        #expect(buffers.count == 3)
        var end = memory.baseAddress
        for (number, buffer) in buffers.enumerated() {
            let start = try #require(buffer.writable.baseAddress)
            #expect((UInt(bitPattern: start) + 8).isMultiple(of: UInt(Buffer.pageSize)))
            #expect(try start >= #require(end) && buffer.writable.count == 10_000 && buffer.alignedByte == 8)
            end = start + buffer.writable.count
            buffer.writable.initializeMemory(as: UInt8.self, repeating: UInt8(number))
        }
        #expect(try #require(end) <= #require(memory.baseAddress) + memory.count)
        for (number, buffer) in buffers.enumerated() {
            #expect(buffer.writable.allSatisfy { $0 == UInt8(number) })
        }
        while buffers.count > 1 { buffers.removeLast() }
        #expect(owner != nil)
        buffers.removeLast()
        #expect(owner == nil)
    }

    @Test("Records of a megabyte lie in pairs in a huge page, and are used again")
    func pairs() throws {
        let (size, hugePage) = (1 << 20 + 8, 2 << 20)
        let state = StreamState(isLocal: true)
        pattern(40_000).withUnsafeBytes { state.append($0) }
        while let buffer = state.next() { #expect(buffer.count > 0) }
        state.setFraming(Framing(recordSize: size, alignedByte: 8, distance: 0))
        let content = pattern(5 * size)
        content.withUnsafeBytes { state.append($0) }
        var pages: [Int: Int] = [:]
        var read: [Buffer] = []
        while let buffer = state.next() {
            #expect(buffer.count == size && isAligned(buffer, 8))
            pages[Int(bitPattern: buffer.bytes.baseAddress) / hugePage, default: 0] += 1
            read.append(buffer)
        }
        // The first record may be the only one, and has memory of its own.
        #expect(read.count == 5)
        let first = try #require(read.first)
        pages[Int(bitPattern: first.bytes.baseAddress) / hugePage, default: 1] -= 1
        #expect(pages.values.filter { $0 > 0 } == [2, 2])
        #expect(read.flatMap { Array($0.bytes) } == content)
        read.removeFirst()
        for buffer in read { state.recycle(buffer) }
        content.prefix(4 * size).withUnsafeBytes { state.append($0) }
        var again: [ObjectIdentifier] = []
        while let buffer = state.next() { again.append(ObjectIdentifier(buffer)) }
        #expect(Set(again) == Set(read.map(ObjectIdentifier.init)))
    }

    @Test("Messages that come now and then take small buffers, and what comes faster than it is read takes large ones")
    func smallBuffers() throws {
        let state = StreamState(isLocal: true)
        for _ in 0..<5 {
            pattern(100).withUnsafeBytes { state.append($0) }
            let buffer = try #require(state.next())
            #expect(buffer.count == 100 && buffer.capacity == 32 << 10)
        }
        pattern(100_000).withUnsafeBytes { state.append($0) }
        var capacities: [Int] = []
        while let buffer = state.next() { capacities.append(buffer.capacity) }
        #expect(capacities == [32 << 10, 1 << 20])
    }

    @Test("Small buffers are filled again when the application is done with them; where something is left, large ones")
    func smallBuffersAgain() throws {
        let state = StreamState(isLocal: true)
        // They are kept, so that no other buffer gets the identity of one of them.
        var small: [Buffer] = []
        for _ in 0..<128 {
            pattern(32 << 10).withUnsafeBytes { state.append($0) }
            let buffer = try #require(state.next())
            small.append(buffer)
            state.recycle(buffer)
        }
        #expect(Set(small.map(ObjectIdentifier.init)).count == 1)
        var large: [Buffer] = []
        for _ in 0..<4 {
            pattern(4 << 20).withUnsafeBytes { state.append($0) }
            while let buffer = state.next() {
                if buffer.capacity > 32 << 10 { large.append(buffer) }
                state.recycle(buffer)
            }
        }
        #expect(large.count >= 12 && Set(large.map(ObjectIdentifier.init)).count <= 5)
    }

    @Test("Megabytes that an application reads piece by piece are a few buffers, and not one for each piece")
    func pieces() async throws {
        let pair = try await ConnectedPair()
        let (asker, answerer) = try await pair.stream()
        let content = pattern(4 << 20)
        var (all, kept): ([UInt8], [Buffer]) = ([], [])
        for start in stride(from: 0, to: content.count, by: 32 << 10) {
            let piece = content[start..<start + (32 << 10)]
            try await asker.write(Buffer(copying: piece))
            while all.count < piece.endIndex {
                let buffer = try #require(try await answerer.read(reusing: kept.last))
                all += buffer.bytes
                kept.append(buffer)
            }
        }
        #expect(all == content)
        #expect(Set(kept.map(ObjectIdentifier.init)).count <= 8)
        await pair.close()
    }
}
