// SPDX-License-Identifier: Apache-2.0

/// Splits a stream of bytes into lines of at most ``bound`` bytes. A longer line is skipped to its end.
struct BridgeLines {
    /// The most bytes of a line without its end: a user info of 48 KB as JSON, or 96 KiB of a stream as Base64.
    static let bound = 128 << 10

    enum Line: Equatable {
        case text([UInt8])
        /// Longer than the bound.
        case tooLong
    }

    private var partial: [UInt8] = []
    private var isSkipping = false
    /// The number of lines so far, including the last one.
    private(set) var number = 0

    /// Adds bytes, and returns the lines that they complete.
    mutating func add(_ bytes: some Collection<UInt8>) -> [(number: Int, line: Line)] {
        var lines: [(Int, Line)] = []
        var rest = bytes[...]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            collect(rest[..<end])
            lines.append(finish())
            rest = rest[rest.index(after: end)...]
        }
        collect(rest)
        return lines
    }

    /// The line that the end of the input completes; `nil` if the input ended with a whole line.
    mutating func last() -> (number: Int, line: Line)? {
        guard isSkipping || !partial.isEmpty else { return nil }
        return finish()
    }

    private mutating func collect(_ bytes: some Collection<UInt8>) {
        guard !isSkipping else { return }
        guard partial.count + bytes.count <= Self.bound else {
            partial = []
            isSkipping = true
            return
        }
        partial.append(contentsOf: bytes)
    }

    private mutating func finish() -> (Int, Line) {
        number += 1
        defer {
            partial = []
            isSkipping = false
        }
        return (number, isSkipping ? .tooLong : .text(partial))
    }
}
