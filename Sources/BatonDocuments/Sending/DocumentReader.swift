// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
package import BatonProtocol
import Glibc
import SystemPackage

/// Reads the chunks of an offered document, checksummed and ready to be sent.
///
/// It runs on a thread of its own (`BlockingExecutor`), never on an event loop. Disk and network overlap when the
/// caller asks for the next chunks while the stream still sends the last ones: two buffers per transfer do.
///
/// Each file is compared with what was offered when it is opened and after every chunk. A folder arrives as it was
/// offered; a file that was already sent may have changed since.
package actor DocumentReader {
    /// Encodings that the receiver takes besides plain content.
    package struct Encodings: Sendable {
        /// Bytes that it has already; nil when it has told none.
        package var signatures: SignatureIndex?
        package var takesCompressed: Bool

        /// Plain content alone by default.
        package init(signatures: SignatureIndex? = nil, takesCompressed: Bool = false) {
            self.signatures = signatures
            self.takesCompressed = takesCompressed
        }
    }

    /// Where the time of reading went.
    package struct Times: Sendable, Hashable {
        /// Opening and reading files.
        package var disk = Duration.zero
        /// Comparing, compressing and checking.
        package var processor = Duration.zero

        package init() {}
    }

    package nonisolated let document: ScannedDocument

    private nonisolated let executor: BlockingExecutor
    /// Opened on the reader's thread; nil before that and once it is closed.
    private var files: DocumentFiles?
    private var remaining: ArraySlice<Range<UInt64>>
    private var current: OpenedFile?
    private var encoder: ChunkEncoder
    private var failure: DocumentError?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Opens a document for reading.
    ///
    /// - Parameters:
    ///   - document: what was scanned when it was offered or last saved.
    ///   - ranges: which chunks, one range after the other; all by default.
    /// - Throws: `unreadable`, `readFailed`; `sourceChanged` when the document is another one now, or not there;
    ///   `badRange`, `busy`.
    package static func open(
        _ document: ScannedDocument, ranges: [Range<UInt64>]? = nil
    ) async throws(DocumentError) -> DocumentReader {
        let layout = document.tree.layout
        let ranges = ranges ?? [layout.allChunks]
        guard ranges.allSatisfy(layout.contains) else {
            throw DocumentError(.badRange, document.tree.label.description)
        }
        let executor: BlockingExecutor
        do {
            executor = try BlockingExecutor(name: "baton-reader")
        } catch {
            throw DocumentError(.busy, "a document", underlyingError: error)
        }
        let reader = DocumentReader(document, ranges, executor)
        try await reader.begin()
        return reader
    }

    private init(_ document: ScannedDocument, _ ranges: [Range<UInt64>], _ executor: BlockingExecutor) {
        self.document = document
        self.executor = executor
        remaining = ranges.filter { !$0.isEmpty }[...]
        encoder = ChunkEncoder(Encodings())
    }

    /// Whether there are chunks that have not been read.
    ///
    /// - Throws: what reading has failed with.
    package func hasMore() throws(DocumentError) -> Bool {
        if let failure { throw failure }
        return !remaining.isEmpty
    }

    /// Reads the next chunks' records into an empty buffer of `ChunkRecord.capacity`, if there are more: one whole
    /// chunk, or as many small ones as fit.
    ///
    /// - Parameters:
    ///   - bottleneck: what the transfer waits for at this device, for the receiver to know.
    ///   - linkWait: how long the network has waited for the last records to go, which tells whether compressing pays.
    /// - Returns: bytes of the document in them.
    /// - Throws: `sourceChanged`, `unreadable`, `readFailed`, `cancelled`, `busy`. The file is closed then, and every
    ///   later call throws the same.
    package func read(
        into buffer: Buffer, telling bottleneck: Bottleneck, linkWait: Duration
    ) throws(DocumentError) -> UInt64 {
        do throws(DocumentError) {
            encoder.begin(telling: bottleneck, linkWait: linkWait)
            return try fill(buffer)
        } catch {
            close()
            failure = error
            throw error
        }
    }

    /// The receiver takes these from the next chunk on.
    ///
    /// - Parameter now: the clock by which compressing is judged.
    package func take(
        _ encodings: Encodings,
        now: @escaping @Sendable () -> Instant = { Instant(nanoseconds: MonotonicClock.nanoseconds()) }
    ) {
        encoder = ChunkEncoder(encodings, now: now)
    }

    package var times: Times { encoder.times }

    /// Closes the file; nothing is read from then on. Dropping the reader closes it as well.
    package func close() {
        current = nil
        files = nil
        remaining = []
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
        if remaining.isEmpty { current = nil }
        return content
    }

    private func file(_ index: Int) throws(DocumentError) -> OpenedFile {
        if let current, current.index == index { return current }
        // Closed before the next is opened: descriptors stay few.
        current = nil
        let start = MonotonicClock.nanoseconds()
        guard let files else { throw DocumentError(.cancelled, document.tree.label.description) }
        let opened = try files.open(file: index)
        try opened.require(document.tree.entry(ofFile: index).file?.version)
        encoder.times.disk += .nanoseconds(MonotonicClock.nanoseconds() - start)
        current = opened
        return opened
    }
}
