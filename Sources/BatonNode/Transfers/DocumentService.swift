// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import SystemPackage

/// Sends and fetches documents over streams: what joins reader and writer with the protocol.
struct DocumentService: Sendable {
    /// Progress is told this often.
    static let progressInterval = Duration.milliseconds(200)
    /// How long finding a document in the shared folders may take: it arrives without as well.
    static let sharedFolderDeadline = Duration.seconds(2)
    /// Between two looks at a document that is missing.
    private static let pauseOfAbsence = Duration.milliseconds(50)
    /// How long listing and deleting parts may take. A disk that hangs holds one thread for each attempt.
    private static let partsDeadline = Duration.seconds(15)

    /// Entries of a description that are sent at once.
    static let entriesAtOnce = 256
    /// Bytes of names and links' targets after which no further entry is sent at once: 32 KiB. The entries of one write
    /// have to go within one ``stallDeadline``. Over a slow link 256 of the longest, which are 2 MiB, would be late.
    static let entryBytesAtOnce = 32 << 10
    /// Buffers of one transfer that are on their way at once: 3.
    static let buffersOfTransfer = 3
    /// Buffers of what an application looks at: 2, so that the stream is never empty while the next chunk is read,
    /// which documents would make use of.
    static let buffersOfPreview = 2

    let offers: Offers
    let pool: BufferPool
    let ledger: PartFileLedger
    let limit: TransferLimit
    /// How long the other side may take to answer.
    var answerDeadline = Duration.seconds(15)
    /// How long an origin may look at a document before it describes it, and then how long the description may take. A
    /// folder may have a great many files.
    var descriptionDeadline = Duration.seconds(60)
    /// How long who is sent a document may be silent of how far it is.
    var commitDeadline = Duration.seconds(60)
    /// How often who sends one hears how far it is without news.
    var repeatInterval = Duration.seconds(1)
    /// See ``NodeLimits/stallDeadline``.
    var stallDeadline = NodeLimits().stallDeadline
    /// See ``NodeLimits/leastProgress``.
    var leastProgress = NodeLimits().leastProgress
    /// See ``BufferLimits/descriptions``; `nil` bounds them by ``BatonDocuments/DocumentTree`` alone.
    var descriptions: SharedPart?
    /// See ``BufferLimits/olderCopies``; `nil` bounds them by the number of transfers alone.
    var olderCopies: SharedPart?
    /// How long a document that was offered may be missing before it counts as gone. A program that saves may take the
    /// old file away before the new one has its name.
    var absence = Duration.seconds(2)
    /// See ``BufferLimits/previews``; with `nil` previews take the buffers of documents.
    var previews: BufferPool?
    /// See ``BufferLimits/reads``; with `nil` reads take the buffers of documents.
    var reads: BufferPool?

    /// Whose descriptions this user's own applications ask for.
    private static let applications = ""

    /// Looks at a file or folder of this device that is offered.
    ///
    /// - Parameters:
    ///   - selection: the entries that are offered, if it is a folder.
    ///   - name: what an error calls the document, its path if `nil`.
    ///   - descriptions: where the memory that looking takes is counted; `nil` counts it nowhere.
    static func inspect(
        _ path: FilePath, _ selection: DocumentSelection = .all, calledInErrors name: String? = nil,
        countedIn descriptions: SharedPart?
    ) async throws(HandoffError) -> DocumentSource {
        let room = descriptions?.reservation(of: Self.applications)
        return try await onThread(calledInErrors: name) { (_) throws(DocumentError) in
            try DocumentSource(DocumentScan.scan(path, selection, room: room))
        }
    }

    /// Looks at a file or folder of this device that was offered, and at all that is in it; for ``absence`` at the
    /// longest where it is missing. Ends early when the task is cancelled.
    ///
    /// - Parameters:
    ///   - selection: the entries that were offered, if it is a folder.
    ///   - device: who asks; `nil`: an application of this user.
    ///   - name: what an error calls the document, its path if `nil`.
    func scan(
        _ path: FilePath, _ selection: DocumentSelection = .all, for device: PeerName? = nil,
        calledInErrors name: String? = nil
    ) async throws(HandoffError) -> ScannedDocument {
        let room = descriptions?.reservation(of: device?.id ?? Self.applications)
        let end = Instant.now + absence
        return try await Self.onThread(calledInErrors: name) { (_) async throws(DocumentError) in
            while true {
                do throws(DocumentError) {
                    return try DocumentScan.scan(path, selection, room: room)
                } catch {
                    guard error.code == .missing, Instant.now < end else { throw error }
                }
                do {
                    try await Alarm.sleep(for: Self.pauseOfAbsence)
                } catch {
                    throw DocumentError(.cancelled, NameDisplay.escaped(path.bytes))
                }
            }
        }
    }

    /// The parts that no transfer uses at this moment, the newest first.
    func keptParts() async throws(HandoffError) -> [KeptPart] {
        try await withDeadline(Self.partsDeadline, "the disk did not answer") { [ledger] in
            try await Self.onThread { (_) throws(DocumentError) in try ledger.keptParts() }
        }
    }

    /// Deletes a part.
    ///
    /// - Throws: `limitExceeded` while a transfer uses it, `destinationUnwritable` where its disk cannot be reached.
    func discard(_ part: KeptPart) async throws(HandoffError) {
        let outcome = try await withDeadline(Self.partsDeadline, "the disk did not answer") { [ledger] in
            try await Self.onThread { _ in ledger.discard(part) }
        }
        switch outcome {
        case .done: return
        case .inUse:
            throw HandoffError(.limitExceeded, "a transfer goes on with this part: cancel the transfer first")
        case .unreachable:
            let folder = NameDisplay.escaped(part.folder.bytes)
            throw HandoffError(
                .destinationUnwritable, "the folder '\(folder)' cannot be reached or written to. Nothing was deleted.")
        }
    }

    /// Does something that blocks on a disk, such as a dead network file system, on a thread of its own.
    private static func onThread<Value: Sendable>(
        calledInErrors name: String? = nil,
        _ work: @Sendable (isolated DiskThread) async throws(DocumentError) -> Value
    ) async throws(HandoffError) -> Value {
        do throws(DocumentError) {
            return try await work(DiskThread())
        } catch {
            guard let name else { throw HandoffError(error) }
            // Advice about the path is nothing to another device's user, who has none.
            guard error.code != .missing, error.code != .unreadable else {
                throw HandoffError(
                    .documentUnreadable,
                    "'\(name)' can no longer be read on the device that offers it: it was moved or removed there,"
                        + " or its permissions were changed")
            }
            throw HandoffError(DocumentError(error.code, name, underlyingError: error.underlyingError))
        }
    }

    /// Opens the folder that a document is to go to, before the other device hears of anything.
    func openDestination(_ path: FilePath) async throws(HandoffError) -> DestinationFolder {
        try await Self.onThread { (_) throws(DocumentError) in try DestinationFolder(path) }
    }
}

private actor DiskThread {
    private nonisolated let executor: BlockingExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init() throws(DocumentError) {
        do {
            executor = try BlockingExecutor(name: "baton-disk")
        } catch {
            throw DocumentError(.busy, "a document", underlyingError: error)
        }
    }
}

extension FilePath {
    /// A path from the bytes that the system has; `nil` for none and for bytes with a NUL.
    init?(bytes: some Collection<UInt8>) {
        guard !bytes.isEmpty, !bytes.contains(0) else { return nil }
        self.init(platformString: bytes.map { CChar(bitPattern: $0) } + [0])
    }
}
