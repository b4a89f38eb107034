// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import BatonTransport
import Testing

@testable import BatonNode

/// Continuation streams for which there is no room left in the budget.
@Suite("Spliced streams", .timeLimit(.minutes(5)))
struct SpliceTests {
    @Test(
        "Unread bytes wait in their place of the budget, or piece by piece if there is none",
        arguments: [256 << 10, 0])
    func room(bytes: Int) async throws {
        let loop = EventLoop(name: "node")
        let part = ByteBudget(bytes: 4 << 20).part(reserved: 0, ceiling: 4 << 20)
        // As when the others hold all there is.
        #expect(bytes > 0 || part.take(part.available))
        // The reader takes next to nothing unread, so that the rest waits in between.
        var limits = Limits()
        limits.initialStreamWindow = 16 << 10
        let (nearWriter, writer) = try await connectedPair(on: loop)
        let (nearReader, reader) = try await connectedPair(on: loop, limits: limits)
        let source = try await writer.open([])
        let first = try #require(await nearWriter.incoming.makeAsyncIterator().next()).stream
        let sink = try await nearReader.open([])
        let end = try #require(await reader.incoming.makeAsyncIterator().next()).stream
        try await first.respond([])
        try await end.respond([])
        _ = try await sink.response()
        let splicing = Task { await splice(first, sink, within: part) }

        var generator = SeededGenerator(seed: 62)
        let content = generator.bytes(2 << 20)
        let writing = Task {
            for start in stride(from: 0, to: content.count, by: 32 << 10) {
                try await source.write(Buffer(copying: content[start..<start + (32 << 10)]))
            }
            await source.finish()
        }
        var queued = 0
        try await eventually("so much waits, and no more comes") {
            let before = queued
            try await Task.sleep(for: .milliseconds(100))
            queued = try await sink.drained(to: .max)
            return queued > bytes && queued == before
        }
        // One piece is what was read at once.
        #expect(queued <= bytes + Connection.readBound, "\(queued)")

        var read: [UInt8] = []
        while let buffer = try await end.read() { buffer.withBytes { read.append(contentsOf: $0) } }
        #expect(read == content)
        await end.finish()
        try await writing.value
        _ = try await source.response()
        await splicing.value
        for connection in [nearWriter, writer, nearReader, reader] { await connection.close() }
    }

    @Test(
        "A failure, and a reset behind the end, come behind all that was sent, however late it is read",
        arguments: [ApplicationErrorCode.programFailed(status: 3), .noError])
    func failure(code: ApplicationErrorCode) async throws {
        let loop = EventLoop(name: "node")
        let part = ByteBudget(bytes: 4 << 20).part(reserved: 0, ceiling: 4 << 20)
        var limits = Limits()
        limits.initialStreamWindow = 16 << 10
        let (nearWriter, writer) = try await connectedPair(on: loop)
        let (nearReader, reader) = try await connectedPair(on: loop, limits: limits)
        let source = try await writer.open([])
        let first = try #require(await nearWriter.incoming.makeAsyncIterator().next()).stream
        let sink = try await nearReader.open([])
        let end = try #require(await reader.incoming.makeAsyncIterator().next()).stream
        try await first.respond([])
        try await end.respond([])
        _ = try await sink.response()
        let splicing = Task { await splice(first, sink, within: part) }

        let content = [UInt8](repeating: 7, count: 300_000)
        try await source.write(Buffer(copying: content))
        if code == .noError { await source.finish() }
        try await source.drained()
        await source.reset(code)
        // The other direction finds out while most of it is on its way.
        try await end.write(Buffer(copying: [1]))
        var read: [UInt8] = []
        var failure: TransportError.Code?
        do throws(TransportError) {
            while let buffer = try await end.read() { buffer.withBytes { read.append(contentsOf: $0) } }
        } catch {
            failure = error.code
        }
        #expect(read == content)
        #expect(failure == (code == .noError ? nil : .reset(code)))
        // A side that goes on writing is told.
        try await eventually("it is refused") {
            do throws(TransportError) {
                try await end.write(Buffer(copying: [1]))
                return false
            } catch {
                return error.code == .reset(code)
            }
        }
        await splicing.value
        for connection in [nearWriter, writer, nearReader, reader] { await connection.close() }
    }
}
