struct ChunkDecompressor: ~Copyable {
    init() throws(DocumentError) {}
    mutating func decompress(_ p: UnsafeRawBufferPointer, into c: UnsafeMutableRawBufferPointer) throws(DocumentError) {}
}
