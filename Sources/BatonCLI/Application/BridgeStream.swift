// SPDX-License-Identifier: Apache-2.0

import Baton
import FoundationEssentials

/// One pair of continuation streams, as the program reads and writes it.
///
/// Back-pressure both ways is counted in messages: ``window`` `data` events may be without the program's `ack`, and
/// ``window`` `write` messages without the bridge's `written`. Nothing that one stream waits for holds up another.
actor BridgeStream {
    /// Messages on their way in each direction: at most 256 KiB to the program, and 384 KiB from it.
    static let window = 4
    /// Bytes of one `data` event, 64 KiB as Base64.
    static let pieceSize = 48 << 10

    nonisolated let name: String
    private let input: ContinuationInput
    private let output: ContinuationOutput
    private let printer: BridgePrinter
    private let credit: AsyncStream<Void>
    private let credits: AsyncStream<Void>.Continuation
    private let items: AsyncStream<Item>
    private let queue: AsyncStream<Item>.Continuation
    private var unwritten = 0
    private var isFinished = false
    private var hasFailed = false

    private enum Item: Sendable {
        case write([UInt8])
        case finish
    }

    init(_ name: String, _ input: ContinuationInput, _ output: ContinuationOutput, printer: BridgePrinter) {
        self.name = name
        self.input = input
        self.output = output
        self.printer = printer
        (credit, credits) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.window))
        // Bounded by `unwritten`, and one end.
        (items, queue) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.window + 1))
        for _ in 0..<Self.window { credits.yield() }
    }

    /// Lasts until both directions have ended, or one failed.
    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.readInput() }
            group.addTask { await self.writeOutput() }
        }
    }

    /// Queues bytes.
    func write(_ bytes: [UInt8]) async throws(BridgeProblem) {
        guard !isFinished else { throw BridgeProblem("the stream “\(name)” has been finished") }
        guard unwritten < Self.window else {
            await fail(
                UserActivityError(.invalid, "\(Self.window) messages were not written yet: wait for “written”"))
            return
        }
        unwritten += 1
        queue.yield(.write(bytes))
    }

    func finish() throws(BridgeProblem) {
        guard !isFinished else { throw BridgeProblem("the stream “\(name)” has been finished") }
        isFinished = true
        queue.yield(.finish)
    }

    /// Aborts both directions.
    func reset() async {
        hasFailed = true
        await stop()
    }

    /// The program has taken one `data` event.
    func acknowledge() throws(BridgeProblem) {
        guard case .dropped = credits.yield() else { return }
        throw BridgeProblem("all data of the stream “\(name)” was acknowledged before")
    }

    private func readInput() async {
        var credit = credit.makeAsyncIterator()
        do {
            while let data = try await input.read() {
                var rest = data[...]
                while !rest.isEmpty {
                    guard await credit.next(isolation: self) != nil else { return }
                    await printer.print(.data(stream: name, Data(rest.prefix(Self.pieceSize))))
                    rest = rest.dropFirst(Self.pieceSize)
                }
            }
            if !hasFailed { await printer.print(.end(stream: name)) }
        } catch {
            await fail(error)
        }
    }

    private func writeOutput() async {
        for await item in items {
            switch item {
            case .write(let bytes):
                do {
                    try await output.write(bytes)
                } catch {
                    return await fail(error)
                }
                unwritten -= 1
                if !hasFailed { await printer.print(.written(stream: name, bytes: bytes.count)) }
            case .finish:
                return await output.finish()
            }
        }
    }

    private func fail(_ error: UserActivityError) async {
        guard !hasFailed else { return }
        hasFailed = true
        await printer.print(.streamFailed(stream: name, error))
        await stop()
    }

    private func stop() async {
        isFinished = true
        credits.finish()
        queue.finish()
        await input.cancel()
    }
}
