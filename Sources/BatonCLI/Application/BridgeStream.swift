// SPDX-License-Identifier: Apache-2.0

import Baton
import FoundationEssentials

/// One pair of continuation streams, as the program reads and writes it.
///
/// Back-pressure is counted in messages, both ways: at most ``window`` `data` events may wait for the program's `ack`,
/// and ``window`` `write` messages for the bridge's `written`. Streams do not wait for each other.
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
        case fail(UInt8)
    }

    init(_ name: String, _ input: ContinuationInput, _ output: ContinuationOutput, printer: BridgePrinter) {
        self.name = name
        self.input = input
        self.output = output
        self.printer = printer
        (credit, credits) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.window))
        // `unwritten` bounds the writes, and there is one end.
        (items, queue) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.window + 1))
        for _ in 0..<Self.window { credits.yield() }
    }

    /// Runs until both directions have ended, or one has failed.
    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.readInput() }
            group.addTask { await self.writeOutput() }
        }
    }

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

    /// Ends both directions.
    ///
    /// - Parameter status: why the program failed; nil if it cancels. The other side reads what was written before a
    ///   failure; a cancellation discards it.
    func reset(status: UInt8?) async {
        hasFailed = true
        guard let status, !isFinished else { return await stop() }
        isFinished = true
        queue.yield(.fail(status))
    }

    /// The program has read one `data` event.
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
            case .fail(let status):
                await output.fail(status: status)
                return await stop()
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
