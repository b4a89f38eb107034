// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop
package import BatonProtocol
package import SystemPackage

/// Receives a document into a folder: verifies every chunk, and puts the document in place only when it is whole.
///
/// It lives on the loop of the connection that brings the document. A thread of its own does all the work on the disk,
/// and is confined to the destination (``Landlock``) before the document's first byte is written. Checksum and write
/// share that thread, because a checksum takes a fifth of the time of a write from cache. Until ``commit()``, the
/// folder holds a hidden part only. A transfer that ends before leaves it with a journal of what is there, and the next
/// writer of the same version of the document goes on with it.
package actor DocumentWriter {
    /// The most ranges that are asked for at once: 1024.
    package static let rangeLimit = 1024

    /// The progress of a transfer.
    package struct Progress: Sendable, Hashable {
        /// Bytes of the document that are verified and written.
        package let verifiedByteCount: UInt64
        /// Bytes of these that a transfer goes on with if this one ends now: all of them, unless the state folder has
        /// no room to write down that they are there.
        package let keptByteCount: UInt64
        /// The bottleneck that the sender named last.
        package let sender: Bottleneck
        /// Bytes, from the next one on, to where a record begins.
        package let bytesToNextRecord: Int
        /// How long the disk took so far.
        package let diskTime: Duration
        /// How long comparing, decompressing and assembling took so far.
        package let processorTime: Duration
    }

    /// The state of a document when a transfer begins.
    package enum Start: Sendable, Equatable {
        /// Nothing, or a part of this version.
        case unchanged
        /// Parts of other versions. They are built upon, or were deleted because the disk has no room for both.
        case changed(keepsOlder: Bool)
    }

    private enum State {
        case receiving
        case committed
        /// With the bytes that are kept.
        case ended(DocumentError, kept: UInt64)
    }

    /// The document.
    package nonisolated var tree: DocumentTree { reception.tree }
    /// The state of the document at the beginning. If the origin does not say which document it is, another version
    /// counts as a change only if it was deleted.
    package nonisolated var start: Start { reception.start }
    /// How large the pieces are of which the other device is told (``nextSignatures()``); nil where this device has
    /// nothing to build upon.
    package nonisolated var pieceSize: PieceSize? { reception.pieceSize }
    /// How far it is.
    package private(set) var progress: Progress

    /// The thread that was confined.
    nonisolated let thread: PrivateThread

    private nonisolated let loop: EventLoop
    private nonisolated let reception: Reception
    private var state = State.receiving
    private var hasBegun = false
    /// Buffers that the thread has, the oldest first. With one behind the one that it writes, it never waits for a loop
    /// that decrypts what comes next.
    private var underWay: [Buffer] = []
    /// Buffers that are on loan no more, at most two.
    private var free: [Buffer] = []
    private var failure: DocumentError?
    private var waiter: CheckedContinuation<Void, Never>?

    /// The loop of the connection.
    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Makes everything ready to receive a document, before a byte of it is asked for.
    ///
    /// - Parameters:
    ///   - tree: what the document consists of.
    ///   - origin: the device that offers it; a transfer goes on with what came of the same document from it.
    ///   - folder: the destination.
    ///   - ledger: remembers what is unfinished.
    ///   - copies: older copies on this device, to build upon where the other device can tell what differs.
    ///   - requiringCopies: whether a copy that cannot be opened is refused, rather than done without. Default true.
    ///   - identity: which document it is; another one of its name keeps what has come of it.
    ///   - naming: what the document is called in the folder.
    ///   - loop: the loop of the connection that brings it.
    /// - Throws: `destinationExists`, `destinationMissing`, `destinationNotWritable`, `destinationUnsuitable`,
    ///   `destinationFull`, `badName`, `tooLarge`, `stateUnavailable`, `busy`, `notConfinable`, `writeFailed`,
    ///   `cancelled`; what opening a copy throws.
    package static func create(
        _ tree: DocumentTree, from origin: String, in folder: DestinationFolder, ledger: PartFileLedger,
        against copies: [FilePath] = [], requiringCopies: Bool = true, identity: DocumentIdentity = .unknown,
        naming: DocumentNaming = .own, on loop: EventLoop
    ) async throws(DocumentError) -> DocumentWriter {
        let header = JournalHeader(origin: origin, tree: tree, identity: identity)
        let thread: PrivateThread
        do {
            thread = try PrivateThread(name: "baton-confined", waking: loop)
        } catch {
            throw DocumentError(.busy, "a document", underlyingError: error)
        }
        let opened = try await cancelling(thread) { (isCancelled) throws(DocumentError) in
            let reception = try Reception(
                header, in: folder, ledger: ledger, naming: naming,
                against: { () throws(DocumentError) in
                    try OlderCopy.open(copies, requiringAll: requiringCopies)
                }, unless: isCancelled)
            return (reception, try reception.progress())
        }
        return DocumentWriter(opened.0, opened.1, thread, loop)
    }

    private init(_ reception: Reception, _ progress: Progress, _ thread: PrivateThread, _ loop: EventLoop) {
        self.reception = reception
        self.progress = progress
        self.thread = thread
        self.loop = loop
    }

    deinit {
        guard case .receiving = state else { return }
        thread.submit { [reception] in _ = reception.end() }
    }

    /// Whether it has ended because a chunk was not what was to come of the copies that it was built from: one of them
    /// has changed, or the other device has guessed what is in it.
    package var hasMisbuilt: Bool {
        if case .ended(let error, _) = state { error.code == .basisChanged } else { false }
    }

    /// Missing chunks, rising, at most ``rangeLimit`` ranges of them; none when all is there.
    package func missing() async throws(DocumentError) -> [Range<UInt64>] {
        try await perform { (reception) throws(DocumentError) in try reception.missing() }
    }

    /// The next signatures of older copies for the other device; nil when all is told. After that it is told
    /// again, because each request has to be.
    package func nextSignatures() async throws(DocumentError) -> SignatureBatch? {
        try await perform { (reception) throws(DocumentError) in reception.nextSignatures() }
    }

    /// The records of these chunks come next.
    ///
    /// - Throws: `badRange` for chunks that the document has not.
    package func begin(_ ranges: [Range<UInt64>]) async throws(DocumentError) {
        try await perform { (reception) throws(DocumentError) in try reception.begin(ranges) }
        hasBegun = true
    }

    /// Takes the next bytes of the chunk records, cut anywhere, and waits until at most two buffers are under way. Each
    /// is on loan until it is returned, or ``finish()`` or ``end()`` returns. ``begin(_:)`` comes first.
    ///
    /// - Returns: a buffer that came before and is not on loan any more.
    /// - Throws: `checksumMismatch`, `badRecord`, `excess`, `destinationFull`, `writeFailed`, ... of these bytes or of
    ///   earlier ones; the transfer has ended then, and every later call throws the same. `cancelled` after
    ///   ``commit()`` or ``end()``.
    package func submit(_ bytes: Buffer) async throws(DocumentError) -> Buffer? {
        precondition(hasBegun, "nobody has said which chunks these bytes are of: call begin(_:) first")
        try await settle(leaving: 1)
        underWay.append(bytes)
        thread.submit { [reception] in
            Result { () throws(DocumentError) in try reception.write(bytes) }
        } completion: { result in
            self.assumeIsolated { $0.note(result) }
        }
        return free.popLast()
    }

    /// Bytes, from the next one on, to where a record begins, if those that are under way are whole chunks.
    package var bytesToNextRecord: Int {
        let left = progress.bytesToNextRecord - underWay.reduce(0) { $0 + $1.count }
        let size = ChunkRecord.plainSize
        return left >= 0 ? left : (left % size + size) % size
    }

    private func note(_ result: Result<Progress, DocumentError>) {
        free.append(underWay.removeFirst())
        switch result {
        case .success(let progress): self.progress = progress
        case .failure(let error): failure = failure ?? error
        }
        waiter?.resume()
        waiter = nil
    }

    /// Waits until at most so many buffers are under way.
    func settle(leaving count: Int) async throws(DocumentError) {
        while underWay.count > count { await withCheckedContinuation { waiter = $0 } }
        guard let failure else { return try requireReceiving() }
        await end(with: failure)
        throw failure
    }

    /// The records that were begun have ended.
    ///
    /// - Throws: `incomplete` when something of them is missing. The transfer has ended then.
    package func finish() async throws(DocumentError) {
        try await settle(leaving: 0)
        do {
            try await perform { (reception) throws(DocumentError) in try reception.finish() }
        } catch {
            await end(with: error)
            throw error
        }
    }

    /// Puts the whole document in place: synchronised, under its name, never in the place of another.
    ///
    /// - Returns: the path of the document: the folder's path as it was given, and the name.
    /// - Throws: `cancelled` when the task is cancelled before it is in place, `incomplete` when bytes are missing,
    ///   `destinationExists` when somebody made something of that name meanwhile, `writeFailed`, `destinationFull`,
    ///   ...; the transfer has ended then.
    package func commit() async throws(DocumentError) -> FilePath {
        try await settle(leaving: 0)
        do {
            let path = try await Self.cancelling(thread) { [reception] (isCancelled) throws(DocumentError) in
                let path = try reception.commit(unless: isCancelled)
                _ = reception.end()
                return path
            }
            state = .committed
            return path
        } catch {
            await end(with: error)
            throw error
        }
    }

    /// Ends the transfer. The part is kept for a transfer that goes on with it. After ``commit()``, or where it
    /// has ended already, it does nothing.
    ///
    /// - Returns: bytes that are kept: what such a transfer begins with.
    @discardableResult
    package func end() async -> UInt64 {
        if case .receiving = state { await end(with: DocumentError(.cancelled, tree.label.description)) }
        guard case .ended(_, let kept) = state else { return 0 }
        return kept
    }

    private func end(with error: DocumentError) async {
        let kept = await thread.perform { [reception] in reception.end() }
        if case .receiving = state { state = .ended(error, kept: kept) }
    }

    private func requireReceiving() throws(DocumentError) {
        switch state {
        case .receiving: return
        case .ended(let error, _): throw error
        case .committed: throw DocumentError(.cancelled, tree.label.description)
        }
    }

    private func perform<Value: Sendable>(
        _ body: @escaping @Sendable (Reception) throws(DocumentError) -> Value
    ) async throws(DocumentError) -> Value {
        try requireReceiving()
        return try await thread.perform { [reception] () throws(DocumentError) in try body(reception) }
    }

    /// Does on the thread what takes long, and may ask whether the task that waits for it was cancelled meanwhile.
    private static func cancelling<Value: Sendable>(
        _ thread: PrivateThread, isolation: isolated (any Actor)? = #isolation,
        _ body: @escaping @Sendable (_ isCancelled: () -> Bool) throws(DocumentError) -> Value
    ) async throws(DocumentError) -> Value {
        let flag = CancellationFlag()
        let result = await withTaskCancellationHandler {
            await thread.perform { Result { () throws(DocumentError) in try body { flag.isSet } } }
        } onCancel: {
            flag.set()
        }
        return try result.get()
    }

    private final class CancellationFlag: Sendable {
        private let value = Lock(false)

        var isSet: Bool { value.withLock { $0 } }

        func set() { value.withLock { $0 = true } }
    }
}
