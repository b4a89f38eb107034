// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// The history of a run, one line for each event.
struct Trace {
    /// Lines that are kept. A history that was made shorter has fewer; of a longer one the end is of interest.
    private static let bound = 20_000

    /// Whether anybody reads it. A run without readers makes no text.
    let isOn: Bool
    private(set) var lines: [String] = []

    mutating func add(_ time: Instant, _ who: String, _ text: @autoclosure () -> String) {
        guard isOn else { return }
        if lines.count >= 2 * Self.bound { lines.removeFirst(Self.bound) }
        let digits = String(time.nanoseconds / 1000)
        let micros = String(repeating: "0", count: max(0, 7 - digits.count)) + digits
        let seconds = micros.dropLast(6)
        let padding = String(repeating: " ", count: max(0, 6 - seconds.count))
        let name = who.padding(to: 4)
        lines.append("\(padding)\(seconds).\(micros.suffix(6))  \(name) \(text())")
    }
}

extension String {
    func padding(to width: Int) -> String { self + String(repeating: " ", count: Swift.max(0, width - count)) }
}
