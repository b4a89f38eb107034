public import BatonEventLoop
public import BatonProtocol
public import SystemPackage

/// Receives a document into a folder: verifies every chunk, and puts the file in place only when it is whole.
///
/// It waits on a thread of its own (`BlockingExecutor`), never on an event loop, for a second one that does all the work
/// and is confined to the destination (``Landlock``) before the document's first byte is written. Checksum and write
/// share that thread, because a checksum takes a fifth of the time of a write from cache. Until `commit`, the folder
/// holds a hidden part file only; every failure, `abort`, and dropping the writer remove it, and `PartFileLedger` after
/// a kill.
public actor DocumentWriter {
    private enum State {
        case idle
        case receiving(Reception)
        case committed
        case failed(DocumentError)
    }

    /// The name that the document gets.
    public nonisolated let label: DocumentLabel
    /// How it is cut.
    public nonisolated let layout: ChunkLayout

    private nonisolated let executor: BlockingExecutor
    private let permissions: UInt16
    private var state = State.idle

    /// The writer's own thread.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Makes everything ready to receive a document, before a byte of it is asked for.
    ///
    /// - Parameters:
    ///   - label: the name it gets in the folder.
    ///   - documentSize: its size in bytes; as many are reserved on the disk.
    ///   - permissions: the origin's permission bits (0 to 0o777). Set-id bits and what the umask takes away are dropped.
    ///   - folder: the destination.
    ///   - ledger: remembers the part file in case that this process is killed.
    ///   - executor: the thread that blocks; one of its own by default.
    /// - Throws: `destinationExists`, `destinationMissing`, `destinationNotWritable`, `destinationUnsuitable`,
    ///   `destinationFull`, `badName`, `tooLarge`, `stateUnavailable`, `busy`, `notConfinable`, `writeFailed`.
    public static func create(
        _ label: DocumentLabel, documentSize: UInt64, permissions: UInt16 = 0o666, in folder: DestinationFolder,
        ledger: PartFileLedger, executor: BlockingExecutor? = nil
    ) async throws(DocumentError) -> DocumentWriter {
        guard let layout = ChunkLayout(documentSize: documentSize) else {
            throw DocumentError(.tooLarge, label.description)
        }
        let executor = try BlockingExecutor.forDocument(executor, "baton-writer")
        let writer = DocumentWriter(label, layout, permissions, executor)
        try await writer.begin(folder, ledger)
        return writer
    }

    private init(
        _ label: DocumentLabel, _ layout: ChunkLayout, _ permissions: UInt16, _ executor: BlockingExecutor
    ) {
        self.label = label
        self.layout = layout
        self.permissions = permissions
        self.executor = executor
    }

    deinit {
        switch state {
        case .receiving(let reception): reception.discardLater()
        case .idle, .committed, .failed: break
        }
    }

    /// Bytes of the document that are verified and written.
    public private(set) var verifiedByteCount: UInt64 = 0

    /// Takes the next bytes of the chunk records, cut anywhere. They are on loan until it returns.
    ///
    /// What comes is written as it comes; larger buffers cost fewer calls (256 KiB or more are best).
    ///
    /// - Returns: bytes of the document that are verified and written by now, for the progress.
    /// - Throws: `checksumMismatch`, `excess`, `destinationFull`, `writeFailed`, ...; the part file is gone then, and
    ///   every later call throws the same. `cancelled` after `commit` or `abort`.
    @discardableResult
    public func write(_ bytes: Buffer) throws(DocumentError) -> UInt64 {
        let reception = try currentReception()
        do {
            verifiedByteCount = try reception.write(bytes)
        } catch {
            fail(error, reception)
            throw error
        }
        return verifiedByteCount
    }

    /// Puts the whole document in place: synchronised, under its name, never in the place of another file.
    ///
    /// - Returns: the path of the document: the folder's path as it was given, and the name.
    /// - Throws: `incomplete` when bytes are missing, `destinationExists` when somebody made a file of that name
    ///   meanwhile, `writeFailed`, `destinationFull`, ...; the part file is gone then.
    public func commit() throws(DocumentError) -> FilePath {
        let reception = try currentReception()
        do {
            let path = try reception.commit(permissions: permissions)
            state = .committed
            return path
        } catch {
            fail(error, reception)
            throw error
        }
    }

    /// Gives the transfer up and removes the part file. After `commit`, or a second time, it does nothing.
    public func abort() {
        guard case .receiving(let reception) = state else { return }
        fail(DocumentError(.cancelled, label.description), reception)
    }

    private func begin(_ folder: DestinationFolder, _ ledger: PartFileLedger) throws(DocumentError) {
        guard
            let verifier = ChunkVerifier(layout: layout, chunks: layout.allChunks, label: label, checks: folder.checks)
        else {
            throw DocumentError(.tooLarge, label.description)
        }
        state = .receiving(try Reception(of: label, verifier, in: folder, ledger: ledger))
    }

    private func currentReception() throws(DocumentError) -> Reception {
        switch state {
        case .receiving(let reception): reception
        case .failed(let error): throw error
        case .idle, .committed: throw DocumentError(.cancelled, label.description)
        }
    }

    private func fail(_ error: DocumentError, _ reception: Reception) {
        reception.discard()
        state = .failed(error)
    }
}
