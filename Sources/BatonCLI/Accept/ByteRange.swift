/// Bytes of a document that a user asks for: `START-END`, both counted from 0 and END left out, `START-` to its end.
struct ByteRange: Equatable {
    /// Bytes that are asked for at once: 4 MiB.
    static let pieceSize: UInt64 = 4 << 20
    /// What is wrong with a text that is no range.
    static let problem = "--range takes START-END in bytes, such as 0-65536, or START- to the end"

    let start: UInt64
    let end: UInt64

    /// Reads a range; nil for what is none, or is empty.
    init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let start = UInt64(parts[0]) else { return nil }
        let end = parts[1].isEmpty ? UInt64.max : UInt64(parts[1])
        guard let end, start < end else { return nil }
        self.start = start
        self.end = end
    }
}
