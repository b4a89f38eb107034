public import BatonEventLoop
public import BatonProtocol
import Glibc
import SystemPackage

/// Reads the chunks of an offered document, checksummed and ready to be sent.
///
/// It runs on a thread of its own (`BlockingExecutor`), never on an event loop. Disk and network overlap when the
/// caller asks for the next chunk while the stream still sends the last one: two buffers per transfer do.
///
/// The document is compared with what was offered before the first byte, before every chunk and after the last one; the
/// last chunk is handed out only when nothing has changed.
public actor DocumentReader {
    private enum State {
        case reading(OpenFile, next: UInt64)
        case ended
        case failed(DocumentError)
    }

    /// What is read.
    public nonisolated let source: DocumentSource
    /// How it is cut.
    public nonisolated let layout: ChunkLayout
    /// The chunks that are read.
    public nonisolated let chunks: Range<UInt64>

    private nonisolated let executor: BlockingExecutor
    private let pool: BufferPool
    private var state = State.ended

    /// The reader's own thread.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Opens a source for reading.
    ///
    /// - Parameters:
    ///   - source: what was inspected when it was offered or last saved.
    ///   - chunks: which chunks; all by default.
    ///   - pool: where the buffers come from. They need `ChunkRecord.capacity`.
    ///   - executor: the thread that blocks; one of its own by default.
    /// - Throws: what `DocumentSource.inspect` throws; `sourceChanged` when it is not the same file, or not in the same
    ///   state; `badRange`; `tooLarge`.
    public static func open(
        _ source: DocumentSource, chunks: Range<UInt64>? = nil, pool: BufferPool,
        executor: BlockingExecutor? = nil
    ) async throws(DocumentError) -> DocumentReader {
        guard let layout = ChunkLayout(documentSize: source.size) else {
            throw DocumentError(.tooLarge, source.path.displayed)
        }
        let chunks = chunks ?? layout.allChunks
        guard layout.contains(chunks) else { throw DocumentError(.badRange, source.path.displayed) }
        precondition(pool.bufferCapacity >= ChunkRecord.capacity, "a buffer of the pool has to hold a record")
        let executor = try BlockingExecutor.forDocument(executor, "baton-reader")
        let reader = DocumentReader(source, layout, chunks, pool, executor)
        try await reader.begin()
        return reader
    }

    private init(
        _ source: DocumentSource, _ layout: ChunkLayout, _ chunks: Range<UInt64>, _ pool: BufferPool,
        _ executor: BlockingExecutor
    ) {
        self.source = source
        self.layout = layout
        self.chunks = chunks
        self.pool = pool
        self.executor = executor
    }

    /// The next chunk's record (its bytes, then its checksum), or nil after the last.
    ///
    /// Waits for a buffer of the pool. The buffer is the caller's, to be given back with `BufferPool.release` when it
    /// was sent. Calls follow one another; a second one while one waits gets the chunk after.
    ///
    /// - Throws: `sourceChanged`, `readFailed`, `cancelled`, `busy`. After `sourceChanged` and `readFailed` every later
    ///   call throws the same, and the file is closed.
    public func next() async throws(DocumentError) -> Buffer? {
        guard try claim() != nil else { return nil }
        let buffer = try await pool.acquire()
        do throws(DocumentError) {
            // Asked again: another call, or `close`, may have come while this one waited.
            guard let (file, chunk) = try claim() else {
                pool.release(buffer)
                return nil
            }
            try read(chunk, of: file, into: buffer)
            state = chunk + 1 == chunks.upperBound ? .ended : .reading(file, next: chunk + 1)
            return buffer
        } catch {
            pool.release(buffer)
            state = .failed(error)
            throw error
        }
    }

    /// Closes the file; `next` returns nil from then on. Dropping the reader closes it as well.
    public func close() {
        state = .ended
    }

    private func begin() throws(DocumentError) {
        let file = OpenFile(try DocumentSource.open(source.path).takeFile())
        try requireUnchanged(file)
        let number = file.file.rawValue
        // Doubles the read-ahead; advice that is refused costs nothing.
        _ = posix_fadvise(
            number, off_t(layout.offset(of: chunks.lowerBound)), off_t(layout.byteCount(of: chunks)),
            POSIX_FADV_SEQUENTIAL)
        if !chunks.isEmpty { state = .reading(file, next: chunks.lowerBound) }
    }

    private func claim() throws(DocumentError) -> (OpenFile, UInt64)? {
        switch state {
        case .reading(let file, let next): (file, next)
        case .ended: nil
        case .failed(let error): throw error
        }
    }

    private func read(_ chunk: UInt64, of file: OpenFile, into buffer: Buffer) throws(DocumentError) {
        let size = layout.size(of: chunk)
        let room = buffer.writable
        let content = UnsafeMutableRawBufferPointer(rebasing: room[..<size])
        let count: Int
        do {
            count = try SystemCalls.read(file.file, into: content, at: layout.offset(of: chunk))
        } catch {
            throw DocumentError(.readFailed, source.path.displayed, underlyingError: error)
        }
        guard count == size else { throw DocumentError(.sourceChanged, source.path.displayed) }
        try requireUnchanged(file)
        let checksum = ChunkChecksum(of: UnsafeRawBufferPointer(content))
        checksum.write(to: UnsafeMutableRawBufferPointer(rebasing: room[size..<size + ChunkRecord.checksumSize]))
        buffer.count = size + ChunkRecord.checksumSize
    }

    /// Compares the open file with what was offered. After a chunk was read, so that what is handed out was read from
    /// the unchanged file: a later change is seen with the next chunk.
    private func requireUnchanged(_ file: OpenFile) throws(DocumentError) {
        let identity: FileIdentity
        do {
            identity = FileIdentity(try SystemCalls.status(of: file.file))
        } catch {
            throw DocumentError(.readFailed, source.path.displayed, underlyingError: error)
        }
        guard identity == source.identity else { throw DocumentError(.sourceChanged, source.path.displayed) }
    }
}

/// An owned file where an enum that is copied has to refer to it. Closed with its last reference.
final class OpenFile {
    let file: OwnedDescriptor

    init(_ file: consuming OwnedDescriptor) {
        self.file = file
    }
}

extension BlockingExecutor {
    /// The thread for one document: the caller's, or a new one.
    ///
    /// - Throws: `busy` where the machine has no thread to give.
    static func forDocument(_ given: BlockingExecutor?, _ name: String) throws(DocumentError) -> BlockingExecutor {
        if let given { return given }
        do {
            return try BlockingExecutor(name: name)
        } catch {
            throw DocumentError(.busy, "a document", underlyingError: error)
        }
    }
}
