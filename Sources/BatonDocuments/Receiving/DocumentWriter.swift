// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop
package import BatonProtocol
package import SystemPackage

/// Receives a document into a folder: verifies every chunk, and puts the document in place only when it is whole.
///
/// It waits on a thread of its own (`BlockingExecutor`), never on an event loop, for a second one that does all the
/// work and is confined to the destination (``Landlock``) before the document's first byte is written. Checksum and
/// write share that thread, because a checksum takes a fifth of the time of a write from cache. Until ``commit()``, the
/// folder holds a hidden part only. A transfer that ends before leaves it with a journal of what is there, and the next
/// writer of the same version of the document goes on with it.
package actor DocumentWriter {
    /// The most ranges that are asked for at once: 1024.
    package static let rangeLimit = 1024

    /// What is there.
    package struct Progress: Sendable, Hashable {
        /// Bytes of the document that are verified and written.
        package let verifiedByteCount: UInt64
        /// Bytes of these that a transfer goes on with if this one ends now: all of them, unless the state folder has
        /// no room to write down that they are there.
        package let keptByteCount: UInt64
        /// What the sender said last that it waits for.
        package let sender: Bottleneck
        /// Bytes, from the next one on, to where a record begins.
        package let bytesToNextRecord: Int
        /// How long the disk took so far.
        package let diskTime: Duration
        /// How long comparing, decompressing and assembling took so far.
        package let processorTime: Duration
    }

    /// What a transfer found of the document when it began.
    package enum Start: Sendable, Equatable {
        /// Nothing, or a part of this version.
        case unchanged
        /// Parts of other versions. They are built upon, or were deleted because the disk has no room for both.
        case changed(keepsOlder: Bool)
    }

    private enum State {
        case idle
        case receiving(Reception)
        case committed
        /// With the bytes that are kept.
        case ended(DocumentError, kept: UInt64)
    }

    /// What is received.
    package nonisolated let tree: DocumentTree

    private nonisolated let executor: BlockingExecutor
    private var state = State.idle
    private var hasBegun = false

    /// The writer's own thread.
    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Makes everything ready to receive a document, before a byte of it is asked for.
    ///
    /// - Parameters:
    ///   - tree: what the document consists of.
    ///   - origin: the device that offers it; a transfer goes on with what came of the same document from it.
    ///   - folder: the destination.
    ///   - ledger: remembers what is unfinished.
    ///   - copies: older copies on this device, to build upon where the other device can tell what differs.
    ///   - requiringCopies: whether a copy that cannot be opened is refused, rather than done without. Default true.
    ///   - sharedCopy: one that nobody has named: it is done without where it cannot be read or is of another kind, and
    ///     without its files of less than ``OlderCopy/leastSharedSize``.
    ///   - identity: which document it is; another one of its name keeps what has come of it.
    ///   - naming: what the document is called in the folder.
    ///   - executor: the thread that blocks; one of its own by default.
    /// - Throws: `destinationExists`, `destinationMissing`, `destinationNotWritable`, `destinationUnsuitable`,
    ///   `destinationFull`, `badName`, `tooLarge`, `stateUnavailable`, `busy`, `notConfinable`, `writeFailed`; what
    ///   opening a copy throws.
    package static func create(
        _ tree: DocumentTree, from origin: String, in folder: DestinationFolder, ledger: PartFileLedger,
        against copies: [FilePath] = [], requiringCopies: Bool = true, sharedCopy: FilePath? = nil,
        identity: DocumentIdentity = .unknown, naming: DocumentNaming = .own, executor: BlockingExecutor? = nil
    ) async throws(DocumentError) -> DocumentWriter {
        let executor = try BlockingExecutor.forDocument(executor, "baton-writer")
        let writer = DocumentWriter(tree, executor)
        try await writer.open(folder, ledger, (origin, identity), (copies, requiringCopies), sharedCopy, naming)
        return writer
    }

    private init(_ tree: DocumentTree, _ executor: BlockingExecutor) {
        self.tree = tree
        self.executor = executor
    }

    deinit {
        switch state {
        case .receiving(let reception): reception.endLater()
        case .idle, .committed, .ended: break
        }
    }

    /// Whether it has ended because a chunk was not what was to come of the copies that it was built from: one of them
    /// has changed, or the other device has guessed what is in it.
    package var hasMisbuilt: Bool {
        switch state {
        case .ended(let error, _): error.code == .basisChanged
        case .idle, .receiving, .committed: false
        }
    }

    /// What it found of the document. If the origin does not say which document it is, another version counts as a
    /// change only if it was deleted.
    package func start() throws(DocumentError) -> Start { try current().start }

    /// What has not come yet, rising, at most ``rangeLimit`` ranges of it; none when all is there.
    package func missing() throws(DocumentError) -> [Range<UInt64>] { try current().missing() }

    /// How far it is.
    package func progress() throws(DocumentError) -> Progress { try current().progress() }

    /// How large the pieces are of which the other device is told (``nextSignatures()``); nil where this device has
    /// nothing to build upon.
    package func pieceSize() throws(DocumentError) -> PieceSize? { try current().pieceSize() }

    /// What tells the other device which bytes of older copies are here; nil when all is told. After that it is told
    /// again, because each request has to be.
    package func nextSignatures() throws(DocumentError) -> SignatureBatch? { try current().nextSignatures() }

    /// The records of these chunks come next.
    ///
    /// - Throws: `badRange` for chunks that the document has not.
    package func begin(_ ranges: [Range<UInt64>]) throws(DocumentError) {
        try current().begin(ranges)
        hasBegun = true
    }

    /// Takes the next bytes of the chunk records, cut anywhere. They are on loan until it returns. Which chunks they
    /// are has to be known: ``begin(_:)`` comes first.
    ///
    /// What comes is written as it comes; larger buffers cost fewer calls (256 KiB or more are best).
    ///
    /// - Throws: `checksumMismatch`, `badRecord`, `excess`, `destinationFull`, `writeFailed`, ...; the transfer has
    ///   ended then, and every later call throws the same. `cancelled` after ``commit()`` or ``end()``.
    @discardableResult
    package func write(_ bytes: Buffer) throws(DocumentError) -> Progress {
        precondition(hasBegun, "nobody has said which chunks these bytes are of: call begin(_:) first")
        return try ending { (reception) throws(DocumentError) in try reception.write(bytes) }
    }

    /// The records that were begun have ended.
    ///
    /// - Throws: `incomplete` when something of them is missing. The transfer has ended then.
    package func finish() throws(DocumentError) {
        try ending { (reception) throws(DocumentError) in try reception.finish() }
    }

    /// Puts the whole document in place: synchronised, under its name, never in the place of another.
    ///
    /// - Returns: the path of the document: the folder's path as it was given, and the name.
    /// - Throws: `cancelled` when the task is cancelled before it is in place, `incomplete` when bytes are missing,
    ///   `destinationExists` when somebody made something of that name meanwhile, `writeFailed`, `destinationFull`,
    ///   ...; the transfer has ended then.
    package func commit() throws(DocumentError) -> FilePath {
        let path = try ending { (reception) throws(DocumentError) in try reception.commit() }
        state = .committed
        return path
    }

    /// Ends the transfer. What has come is kept, for a transfer that goes on with it. After ``commit()``, or where it
    /// has ended already, it does nothing.
    ///
    /// - Returns: bytes that are kept: what such a transfer begins with.
    @discardableResult
    package func end() -> UInt64 {
        switch state {
        case .receiving(let reception):
            let kept = reception.end()
            state = .ended(DocumentError(.cancelled, tree.label.description), kept: kept)
            return kept
        case .ended(_, let kept): return kept
        case .idle, .committed: return 0
        }
    }

    private func open(
        _ folder: DestinationFolder, _ ledger: PartFileLedger, _ source: (origin: String, identity: DocumentIdentity),
        _ copies: (paths: [FilePath], areRequired: Bool), _ sharedCopy: FilePath?, _ naming: DocumentNaming
    ) throws(DocumentError) {
        var opened: [OlderCopy] = []
        for copy in copies.paths.prefix(OlderCopy.limit) {
            do throws(DocumentError) {
                opened.append(try OlderCopy(opening: copy))
            } catch {
                guard !copies.areRequired else { throw error }
            }
        }
        if let sharedCopy, opened.count < OlderCopy.limit,
            let copy = OlderCopy(shared: sharedCopy, of: tree)
        {
            opened.append(copy)
        }
        state = .receiving(
            try Reception(
                of: tree, from: source.origin, in: folder, ledger: ledger, against: opened, identity: source.identity,
                naming: naming))
    }

    private func current() throws(DocumentError) -> Reception {
        switch state {
        case .receiving(let reception): reception
        case .ended(let error, _): throw error
        case .idle, .committed: throw DocumentError(.cancelled, tree.label.description)
        }
    }

    private func ending<Value>(
        _ body: (Reception) throws(DocumentError) -> Value
    ) throws(DocumentError) -> Value {
        let reception = try current()
        do {
            return try body(reception)
        } catch {
            state = .ended(error, kept: reception.end())
            throw error
        }
    }
}
