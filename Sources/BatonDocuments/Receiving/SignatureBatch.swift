/// What the signatures of a basis say: cut by content, with a digest of each piece.
public struct SignatureBatch: Sendable {
    /// The number of the basis.
    public let basis: Int
    /// Signatures in their wire form, at most 56 KiB.
    public let bytes: [UInt8]
    /// How long making them took the processor; the disk took the rest of the time.
    public let processorTime: Duration
}
