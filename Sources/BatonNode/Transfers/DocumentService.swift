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
    /// How long an application may take for a chunk that it reads: 3 s. Then the origin is left, because it serves one
    /// such read of a device at a time. Once the application has taken the chunk, the origin is asked for the rest.
    /// Three reads may wait in line there, which is less than the 15 s that a device waits for an answer.
    static let readPatience = Duration.seconds(3)
    /// How often in a row a document that an application reads is described anew, because it was refused as another
    /// one: 3.
    static let descriptionsOfRead = 3

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
        return try await looking(calledInErrors: name) { (inspector) throws(DocumentError) in
            try await inspector.inspect(path, selection, room)
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
        let absence = absence
        return try await Self.looking(calledInErrors: name) { (inspector) throws(DocumentError) in
            try await inspector.scan(path, selection, room, awaitedFor: absence)
        }
    }

    /// Looks at one file of a folder of this device. No link in the folder is followed: it may lead elsewhere by now.
    ///
    /// - Throws: `invalidRequest` where the folder has no such file.
    func scan(_ file: EntryPath, in folder: FilePath) async throws(HandoffError) -> ScannedDocument {
        let room = descriptions?.reservation(of: Self.applications)
        let scanned = try await Self.looking(calledInErrors: nil) { (inspector) throws(DocumentError) in
            try await inspector.scan(file, in: folder, room)
        }
        guard let scanned else {
            let label = NameDisplay.escaped(FilePath(root: nil, folder.components.suffix(1)).bytes)
            throw HandoffError(.invalidRequest, "“\(label)” has no file “\(file)”")
        }
        return scanned
    }

    private static func looking<Value: Sendable>(
        calledInErrors name: String?, _ body: (DocumentInspector) async throws(DocumentError) -> Value
    ) async throws(HandoffError) -> Value {
        let inspector: DocumentInspector
        do {
            inspector = try DocumentInspector()
        } catch {
            throw HandoffError(.limitExceeded, "the system has no thread to give: \(error)")
        }
        do {
            return try await body(inspector)
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
        do {
            return try await DestinationFolder.open(path)
        } catch {
            throw HandoffError(error)
        }
    }
}

/// Looks at files on a thread of its own, because a dead network file system blocks.
private actor DocumentInspector {
    /// Between two looks at what is missing.
    private static let pause = Duration.milliseconds(50)

    private nonisolated let executor: BlockingExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init() throws(Errno) {
        executor = try BlockingExecutor(name: "baton-inspector")
    }

    func inspect(
        _ path: FilePath, _ selection: DocumentSelection, _ room: ByteReservation?
    ) throws(DocumentError) -> DocumentSource {
        try DocumentSource.survey(path, selection, room: room)
    }

    func scan(
        _ path: FilePath, _ selection: DocumentSelection, _ room: ByteReservation?, awaitedFor time: Duration
    ) async throws(DocumentError) -> ScannedDocument {
        let end = ContinuousClock.now + time
        while true {
            do {
                return try DocumentScan.scan(path, selection, room: room)
            } catch {
                guard error.code == .missing, ContinuousClock.now < end else { throw error }
            }
            do {
                try await Alarm.sleep(for: Self.pause)
            } catch {
                throw DocumentError(.cancelled, NameDisplay.escaped(path.bytes))
            }
        }
    }

    /// Nil where the folder has no such file, or it is behind a link.
    func scan(
        _ file: EntryPath, in folder: FilePath, _ room: ByteReservation?
    ) throws(DocumentError) -> ScannedDocument? {
        guard let below = FilePath(bytes: file.bytes) else { return nil }
        let names = file.bytes.split(separator: UInt8(ascii: "/")).map(Array.init)
        do {
            guard case .file = try FileLookup.find(names, beneath: folder, followsLinks: false) else { return nil }
        } catch .notDirectory {
            return nil
        } catch {
            let code: DocumentError.Code = error == .noSuchFileOrDirectory ? .missing : .unreadable
            throw DocumentError(code, NameDisplay.escaped(folder.bytes), underlyingError: error)
        }
        return try DocumentScan.scan(folder.appending(below.components), room: room)
    }
}

extension FilePath {
    /// A path from the bytes that the system has; `nil` for none and for bytes with a NUL.
    init?(bytes: some Collection<UInt8>) {
        guard !bytes.isEmpty, !bytes.contains(0) else { return nil }
        let terminated = bytes.map { CChar(bitPattern: $0) } + [0]
        self = terminated.withUnsafeBufferPointer { buffer in
            buffer.baseAddress.map { FilePath(platformString: $0) } ?? FilePath()
        }
    }
}
