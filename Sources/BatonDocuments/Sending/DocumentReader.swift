// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop
package import BatonProtocol
import Glibc
import SystemPackage

/// Reads the chunks of an offered document, checksummed and ready to be sent.
///
/// It runs on a thread of its own (`BlockingExecutor`), never on an event loop. Disk and network overlap when the
/// caller asks for the next chunks while the stream still sends the last ones: two buffers per transfer do.
///
/// Each file is compared with what was offered when it is opened and after every chunk, and a whole folder before its
/// last chunk; a chunk is handed out only when nothing has changed.
package actor DocumentReader {
    private enum State {
        case reading
        case ended
        case failed(DocumentError)
    }

    /// Encodings that the receiver takes besides plain content.
    package struct Encodings: Sendable {
        /// Bytes that it has already; nil when it has told none.
        package var signatures: SignatureIndex?
        /// Whether it takes compressed chunks.
        package var takesCompressed: Bool

        /// Plain content alone by default.
        package init(signatures: SignatureIndex? = nil, takesCompressed: Bool = false) {
            self.signatures = signatures
            self.takesCompressed = takesCompressed
        }
    }

    /// Chunks that were read, as records back to back.
    package struct Records: Sendable {
        /// The records: the caller's, to be given back with `BufferPool.release` when they were sent.
        package let buffer: Buffer
        /// Bytes of the document in them.
        package let contentByteCount: UInt64
    }

    /// Where the time of reading went.
    package struct Times: Sendable, Hashable {
        /// Opening and reading files.
        package var disk = Duration.zero
        /// Comparing, compressing and checking.
        package var processor = Duration.zero

        /// No time.
        package init() {}
    }

    /// The document that is read.
    package nonisolated let document: ScannedDocument

    private nonisolated let executor: BlockingExecutor
    private let pool: BufferPool
    /// Opened on the reader's thread; nil before that and once it is closed.
    private var files: DocumentFiles?
    private let isExcerpt: Bool
    private var remaining: ArraySlice<Range<UInt64>>
    private var current: CurrentFile?
    private var encoder: ChunkEncoder
    private var state = State.reading

    /// The reader's own thread.
    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Opens a document for reading.
    ///
    /// - Parameters:
    ///   - document: what was scanned when it was offered or last saved.
    ///   - ranges: which chunks, one range after the other; all by default.
    ///   - isExcerpt: somebody looks at these chunks alone: what else changes in the folder is none of their concern.
    ///     They are all that is missing of the document by default.
    ///   - pool: where the buffers come from. They need `ChunkRecord.capacity`.
    ///   - executor: the thread that blocks; one of its own by default.
    /// - Throws: `unreadable`, `readFailed`; `sourceChanged` when the document is another one now, or not there;
    ///   `badRange`, `busy`.
    package static func open(
        _ document: ScannedDocument, ranges: [Range<UInt64>]? = nil, isExcerpt: Bool = false,
        pool: BufferPool, executor: BlockingExecutor? = nil
    ) async throws(DocumentError) -> DocumentReader {
        let layout = document.tree.layout
        let ranges = ranges ?? [layout.allChunks]
        guard ranges.allSatisfy(layout.contains) else {
            throw DocumentError(.badRange, document.tree.label.description)
        }
        precondition(pool.bufferCapacity >= ChunkRecord.capacity, "a buffer of the pool has to hold a record")
        let executor = try BlockingExecutor.forDocument(executor, "baton-reader")
        let reader = DocumentReader(document, ranges, isExcerpt, pool, executor)
        try await reader.begin()
        return reader
    }

    private init(
        _ document: ScannedDocument, _ ranges: [Range<UInt64>], _ isExcerpt: Bool, _ pool: BufferPool,
        _ executor: BlockingExecutor
    ) {
        self.document = document
        self.isExcerpt = isExcerpt
        self.pool = pool
        self.executor = executor
        remaining = ranges.filter { !$0.isEmpty }[...]
        encoder = ChunkEncoder(Encodings())
    }

    /// The next chunks' records, or nil after the last: one whole chunk, or as many small ones as fit in a buffer.
    ///
    /// Waits for a buffer of the pool. Calls follow one another; a second one while one waits gets the chunks after.
    ///
    /// - Parameters:
    ///   - bottleneck: what the transfer waits for at this device, for the receiver to know.
    ///   - linkWait: how long the network has waited for the last records to go, which tells whether compressing pays.
    /// - Throws: `sourceChanged`, `unreadable`, `readFailed`, `cancelled`, `busy`. After `sourceChanged` and
    ///   `readFailed` every later call throws the same, and the file is closed.
    package func next(
        telling bottleneck: Bottleneck = .unknown, linkWait: Duration = .zero
    ) async throws(DocumentError) -> Records? {
        guard try hasMore() else { return nil }
        let buffer = try await pool.acquire()
        do throws(DocumentError) {
            // Asked again: another call, or `close`, may have come while this one waited.
            guard try hasMore() else {
                pool.release(buffer)
                return nil
            }
            let count = try read(into: buffer, telling: bottleneck, linkWait: linkWait)
            return Records(buffer: buffer, contentByteCount: count)
        } catch {
            pool.release(buffer)
            throw error
        }
    }

    /// Whether there are chunks that have not been read.
    ///
    /// - Throws: what reading has failed with.
    package func hasMore() throws(DocumentError) -> Bool {
        switch state {
        case .reading: return !remaining.isEmpty
        case .ended: return false
        case .failed(let error): throw error
        }
    }

    /// As ``next(telling:linkWait:)``, into an empty buffer that the caller has; only where there is more.
    ///
    /// - Returns: bytes of the document in it.
    package func read(
        into buffer: Buffer, telling bottleneck: Bottleneck, linkWait: Duration
    ) throws(DocumentError) -> UInt64 {
        do throws(DocumentError) {
            encoder.begin(telling: bottleneck, linkWait: linkWait)
            return try fill(buffer)
        } catch {
            close()
            state = .failed(error)
            throw error
        }
    }

    /// Bytes of a document that is one file, as they are, into an empty buffer with room for them: for whoever reads it
    /// on this device.
    ///
    /// - Throws: `sourceChanged`, `readFailed`.
    package func readContent(_ bytes: Range<UInt64>, into buffer: Buffer) throws(DocumentError) {
        let content = UnsafeMutableRawBufferPointer(rebasing: buffer.writable[..<bytes.count])
        try file(0).read(into: content, at: bytes.lowerBound)
        buffer.count = content.count
    }

    /// The receiver takes these from the next chunk on.
    package func take(_ encodings: Encodings) {
        encoder = ChunkEncoder(encodings)
    }

    /// The same, by a clock that a test keeps.
    func take(_ encodings: Encodings, now: @escaping @Sendable () -> Instant) {
        encoder = ChunkEncoder(encodings, now: now)
    }

    /// Where the time went so far.
    package var times: Times { encoder.times }

    /// Closes the file; ``next(telling:linkWait:)`` returns nil from then on. Dropping the reader closes it as well.
    package func close() {
        current = nil
        files = nil
        remaining = []
        state = .ended
    }

    /// Opens the document and its first file, so that a document that is gone shows before the answer.
    private func begin() throws(DocumentError) {
        files = try DocumentFiles(document)
        guard let chunk = remaining.first?.lowerBound else { return }
        _ = try file(document.tree.layout.place(of: chunk).file)
    }

    /// Fills a buffer with whole records.
    ///
    /// - Returns: bytes of the document in them.
    private func fill(_ buffer: Buffer) throws(DocumentError) -> UInt64 {
        var content: UInt64 = 0
        while let range = remaining.first {
            let place = document.tree.layout.place(of: range.lowerBound)
            let file = try file(place.file)
            // Of a hole nothing but its record goes along. Asked once: it may be filled at any moment, and what is read
            // then would need the room.
            let isHole = file.isHole(place.range)
            let size = isHole ? 0 : place.size
            guard buffer.capacity - buffer.count >= ChunkRecord.size(ofContent: size) || content == 0 else { break }
            try encoder.encode(place, of: file, isHole: isHole, to: buffer)
            content += UInt64(place.size)
            remaining[remaining.startIndex] = range.lowerBound + 1..<range.upperBound
            if range.count == 1 { remaining = remaining.dropFirst() }
        }
        if remaining.isEmpty {
            current = nil
            try requireUnchangedFolder()
        }
        return content
    }

    /// Looks once more at the whole folder, before the last records go: what was written to after its turn, or after an
    /// earlier transfer had brought it, has a newer version, of which the user is told and which is what then is sent.
    private func requireUnchangedFolder() throws(DocumentError) {
        guard document.tree.isFolder, !isExcerpt else { return }
        let start = MonotonicClock.nanoseconds()
        try openedFiles().requireUnchangedFolder()
        encoder.times.disk += .nanoseconds(MonotonicClock.nanoseconds() - start)
    }

    private func file(_ index: Int) throws(DocumentError) -> CurrentFile {
        if let current, current.index == index { return current }
        // Closed before the next is opened: descriptors stay few.
        current = nil
        let start = MonotonicClock.nanoseconds()
        let opened = try CurrentFile(index, of: openedFiles())
        encoder.times.disk += .nanoseconds(MonotonicClock.nanoseconds() - start)
        current = opened
        return opened
    }

    private func openedFiles() throws(DocumentError) -> DocumentFiles {
        guard let files else { throw DocumentError(.cancelled, document.tree.label.description) }
        return files
    }
}

/// The file of a document that is being read, which has not changed since it was offered.
final class CurrentFile {
    let index: Int
    let isSparse: Bool

    private let opened: OpenedFile
    private let name: String

    /// Opens a file.
    ///
    /// - Throws: `sourceChanged` for another version than was offered.
    init(_ index: Int, of files: DocumentFiles) throws(DocumentError) {
        let entry = files.tree.entry(ofFile: index)
        self.index = index
        isSparse = entry.file?.isSparse ?? false
        name = files.tree.displayed(entry.path)
        opened = try files.open(file: index)
        guard let version = entry.file?.version, opened.identity.isOf(version) else {
            throw DocumentError(.sourceChanged, name)
        }
        let number = opened.descriptor.rawValue
        // Doubles the read-ahead; advice that is refused costs nothing.
        if opened.size > UInt64(ChunkLayout.chunkSize) { _ = posix_fadvise(number, 0, 0, POSIX_FADV_SEQUENTIAL) }
    }

    /// Whether there is nothing but a hole.
    func isHole(_ range: Range<UInt64>) -> Bool { isSparse && !opened.hasData(in: range) }

    /// Reads bytes, all that are asked for, and makes sure that they are of the version that was offered: a later
    /// change is seen with the next chunk.
    func read(into bytes: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(DocumentError) {
        guard try readSome(into: bytes, at: offset) == bytes.count else { throw DocumentError(.sourceChanged, name) }
        try requireUnchanged()
    }

    /// Reads bytes, fewer at the end of the file.
    func readSome(into bytes: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(DocumentError) -> Int {
        do {
            return try SystemCalls.read(opened.descriptor, into: bytes, at: offset)
        } catch {
            throw DocumentError(.readFailed, name, underlyingError: error)
        }
    }

    func requireUnchanged() throws(DocumentError) {
        guard try opened.currentIdentity() == opened.identity else { throw DocumentError(.sourceChanged, name) }
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
