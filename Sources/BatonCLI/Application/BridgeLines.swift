// SPDX-License-Identifier: Apache-2.0

/// Lines of a stream of bytes, each at most ``bound`` bytes; what is longer is passed over to its end.
struct BridgeLines {
    /// The most bytes of a line without its end: a user info of 48 KB as JSON, or 96 KiB of a stream as Base64.
    static let bound = 128 << 10

    enum Line: Equatable {
        case text([UInt8])
        /// Longer than the bound.
        case tooLong
    }

    private var partial: [UInt8] = []
    private var isPassingOver = false
    /// How many lines there were, the one that was taken last among them.
    private(set) var number = 0

    /// Takes the lines that bytes complete.
    mutating func take(_ bytes: some Collection<UInt8>) -> [(number: Int, line: Line)] {
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

    /// The line that the end of the input completes; `nil` where it ended with a line.
    mutating func takeLast() -> (number: Int, line: Line)? {
        guard isPassingOver || !partial.isEmpty else { return nil }
        return finish()
    }

    private mutating func collect(_ bytes: some Collection<UInt8>) {
        guard !isPassingOver else { return }
        guard partial.count + bytes.count <= Self.bound else {
            partial = []
            isPassingOver = true
            return
        }
        partial.append(contentsOf: bytes)
    }

    private mutating func finish() -> (Int, Line) {
        number += 1
        defer {
            partial = []
            isPassingOver = false
        }
        return (number, isPassingOver ? .tooLong : .text(partial))
    }
}
