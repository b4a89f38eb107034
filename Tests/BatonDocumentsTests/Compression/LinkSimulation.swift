// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport

@testable import BatonDocuments

/// A sender with one thread, a queue of 4 MiB, and a link that empties it.
struct LinkSimulation: CustomStringConvertible {
    private struct Sent {
        let time: Double
        let tookCompressing: Double
        let isCompressed: Bool
    }

    static let chunk = 1 << 20
    static let queueLimit = 4.0 * Double(chunk)
    /// Seconds to read and hash a chunk, to compress one that shrinks, and to find that one does not.
    static let (reading, compressing, failing) = (0.0003, 0.0025, 0.0008)

    private(set) var policy = CompressionPolicy(now: Instant(nanoseconds: 0))
    /// How often compressing was begun or given up.
    private(set) var changes = 0

    private let rate: (Double) -> Double
    private let ratio: (Double) -> Double
    private let noise: Double
    private let seed: UInt64
    private var generator: SeededGenerator
    private var time = 0.0
    private var queue = 0.0
    private var sent: [Sent] = []

    /// Bytes per second of the link, and what is left of a chunk, each at a time in seconds. Both vary by the part
    /// `noise`, chunk by chunk.
    init(
        rate: @escaping (Double) -> Double, ratio: @escaping (Double) -> Double, noise: Double = 0.2,
        seed: UInt64 = SeededGenerator.chosenSeed
    ) {
        self.rate = rate
        self.ratio = ratio
        self.noise = noise
        self.seed = seed
        generator = SeededGenerator(seed: seed)
    }

    mutating func run(seconds: Double) {
        let end = time + seconds
        while time < end { sendChunk() }
    }

    var tries: Int { sent.count(where: { $0.tookCompressing > 0 }) }

    func compressedShare(from start: Double, to end: Double) -> Double {
        let chunks = sent.filter { (start...end).contains($0.time) }
        return Double(chunks.count(where: \.isCompressed)) / Double(max(1, chunks.count))
    }

    func timeCompressing(from start: Double, to end: Double) -> Double {
        sent.filter { (start...end).contains($0.time) }.reduce(0) { $0 + $1.tookCompressing }
    }

    /// Bytes of content per second.
    func contentRate(from start: Double, to end: Double) -> Double {
        Double(sent.count(where: { (start...end).contains($0.time) }) * Self.chunk) / (end - start)
    }

    var description: String {
        "seed \(seed), at \(time) s: \(sent.count) chunks, \(tries) tries, \(changes) changes, now "
            + (policy.isCompressing ? "compressing" : "plain")
    }

    private var now: Instant { Instant(nanoseconds: UInt64(time * 1e9)) }

    private mutating func sendChunk() {
        let isTried = policy.shouldCompress(now: now)
        let left = 1 - (1 - ratio(time)) * vary()
        let shrinks = isTried && left < 15.0 / 16
        let took = isTried ? (shrinks ? Self.compressing : Self.failing) * vary() : 0
        work(Self.reading + took)
        let wire = shrinks ? Int(left * Double(Self.chunk)) : Self.chunk
        let waiting = enqueue(Double(wire))
        let was = policy.isCompressing
        policy.record(
            .init(
                contentSize: Self.chunk, wireSize: wire, compressing: isTried ? .seconds(took) : nil,
                waiting: .seconds(waiting)), now: now)
        if policy.isCompressing != was { changes += 1 }
        sent.append(Sent(time: time, tookCompressing: took, isCompressed: shrinks))
    }

    /// The link goes on meanwhile.
    private mutating func work(_ seconds: Double) {
        queue = max(0, queue - seconds * rate(time))
        time += seconds
    }

    /// - Returns: seconds waited for room.
    private mutating func enqueue(_ bytes: Double) -> Double {
        let excess = queue + bytes - Self.queueLimit
        queue += bytes
        guard excess > 0 else { return 0 }
        let waiting = excess / (rate(time) * vary())
        queue -= excess
        time += waiting
        return waiting
    }

    private mutating func vary() -> Double {
        1 + noise * Double.random(in: -1...1, using: &generator)
    }
}
