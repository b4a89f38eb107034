// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import Glibc
import SystemPackage

/// What touches the disk while a document is received, on a thread of its own that can reach the destination and
/// nothing else.
///
/// The thread confines itself (``Landlock``) before it makes the part, and with that before the other device is
/// asked for a byte. Every call waits for the thread, so it is made where blocking is allowed; ``endLater()`` alone
/// does not wait.
final class Reception: @unchecked Sendable {  // reason: after `init`, all that changes belongs to `thread`
    /// The thread that was confined.
    let thread: PrivateThread

    private let tree: DocumentTree
    private let checks: ReceivingChecks
    private let bases: Bases
    /// Whether all that came of the document before is of another version. It is found out in `init`.
    private(set) var hasChanged = false
    private var content: PartContent?
    private var verifier: ChunkVerifier?
    private var decoder: ChunkDecoder
    /// Nanoseconds that verifying and writing took.
    private var total: UInt64 = 0

    /// Makes the thread, confines it, and makes the part on it, or opens the one of an earlier transfer.
    ///
    /// - Throws: `busy` where there is no thread, descriptor or memory to be had, `stateUnavailable`, `notConfinable`,
    ///   `cancelled` where the task that calls it is cancelled while it looks at what came before, and what making the
    ///   part throws.
    init(
        of tree: DocumentTree, from origin: String, in folder: DestinationFolder, ledger: PartFileLedger,
        against copies: [OlderCopy] = [], identity: DocumentIdentity = .unknown, naming: DocumentNaming = .own
    ) throws(DocumentError) {
        do {
            thread = try PrivateThread(name: "baton-confined")
        } catch {
            throw DocumentError(.busy, "a document", underlyingError: error)
        }
        self.tree = tree
        checks = folder.checks
        // The thread itself cannot read these any more.
        let umask = ProcessUmask.current
        let header = JournalHeader(origin: origin, boot: folder.run, tree: tree, identity: identity)
        let found = try ledger.unfinished(of: header, in: folder)
        bases = Bases(of: tree)
        decoder = ChunkDecoder(label: tree.label)
        try perform { (isCancelled) throws(DocumentError) in
            let records = try ledger.openFolder()
            do throws(Errno) {
                try folder.confineThread(recordingIn: records.file, readingIn: copies.compactMap(\.folder))
            } catch {
                throw DocumentError(
                    error.isShortage ? .busy : .notConfinable, folder.path.displayed, underlyingError: error)
            }
            let place = PartPlace(
                folder: folder, ledger: ledger, umask: umask, boot: header.boot, records: records,
                naming: naming)
            var parts: [UnfinishedDocument] = []
            for part in found.map({ $0.renumbered(at: place) }) where try self.isThere(part, at: place) {
                parts.append(part)
            }
            self.hasChanged = try self.isChange(identity, since: parts, at: place)
            self.content = try self.content(of: header, goingOnWith: parts, at: place, unless: isCancelled)
            self.findBases(copies)
        }
    }

    /// Whether all that there is of a document is of another version, and something is.
    ///
    /// - Throws: that nobody knows whether something is.
    private func isChange(
        _ identity: DocumentIdentity, since found: [UnfinishedDocument], at place: PartPlace
    ) throws(DocumentError) -> Bool {
        // Of what does not say which document it is, another version may be another document of that name.
        let isOther = found.allSatisfy {
            !$0.header.tree.isSameVersion(as: tree)
                && (identity.hasPlace(of: $0.header.identity) || identity.hasFile(of: $0.header.identity))
        }
        guard isOther else { return false }
        for part in found where try part.fullness(at: place) > 0 { return true }
        return false
    }

    /// The part: of an earlier transfer, where there is one to go on with.
    private func content(
        of header: JournalHeader, goingOnWith found: [UnfinishedDocument], at place: PartPlace,
        unless isCancelled: () -> Bool
    ) throws(DocumentError) -> PartContent {
        var content: PartContent?
        for unfinished in try found.filter({ $0.header.tree.isSameVersion(as: tree) }).fullestFirst(at: place) {
            guard content == nil else {
                bases.add(unfinished, at: place)
                continue
            }
            do throws(DocumentError) {
                content = try PartContent(reopening: unfinished, at: place, unless: isCancelled)
            } catch {
                guard error.code == .destinationFull else { throw error }
                content = try self.content(reopening: unfinished, without: found, at: place, unless: isCancelled)
            }
        }
        let stale = try found.filter { !$0.header.tree.isSameVersion(as: tree) }.fullestFirst(at: place)
        if content == nil {
            content = try self.content(of: header, afterOthers: stale, at: place, unless: isCancelled)
        }
        // Where there is none, what there was of others has gone.
        guard let content else { return try PartContent(creating: header, at: place) }
        for stale in stale { bases.add(stale, at: place) }
        return content
    }

    /// Whether a part is there. Where somebody removed it it is forgotten, and not where its disk is not mounted. What
    /// has its name and is not it may be it later: it is left, and what it was is not built upon.
    ///
    /// - Throws: that nobody knows.
    private func isThere(_ unfinished: UnfinishedDocument, at place: PartPlace) throws(DocumentError) -> Bool {
        let record = unfinished.record
        if let inode = try place.folder.inode(of: record.name, for: tree.label) { return inode == record.inode }
        if record.isLost(on: place.folder.fileSystem), place.ledger.take(record) { place.ledger.remove(record) }
        return false
    }

    /// The part of an earlier transfer, whose room has gone to something else: what there is of others makes room for
    /// it.
    ///
    /// - Throws: `destinationFull` where there is none even so; everything stays then.
    private func content(
        reopening unfinished: UnfinishedDocument, without others: [UnfinishedDocument], at place: PartPlace,
        unless isCancelled: () -> Bool
    ) throws(DocumentError) -> PartContent? {
        guard !tree.isFolder else { return nil }
        guard place.folder.hasRoom(for: tree, inPlaceOf: others) else {
            throw DocumentError(.destinationFull, tree.label.description, underlyingError: .noSpace)
        }
        for other in others where other.record != unfinished.record { bases.add(other, at: place) }
        bases.giveUp()
        return try PartContent(reopening: unfinished, at: place, unless: isCancelled)
    }

    /// The part: a new one, or one of another version.
    ///
    /// A folder of another version is gone on with. A file is what the new one is compared with, and goes when that is
    /// whole; where there is no room for both it is written over, and what there is of others goes at once.
    ///
    /// - Returns: nil where a new one is to be made without more ado.
    private func content(
        of header: JournalHeader, afterOthers stale: [UnfinishedDocument], at place: PartPlace,
        unless isCancelled: () -> Bool
    ) throws(DocumentError) -> PartContent? {
        guard let fullest = stale.first else { return nil }
        if tree.isFolder {
            for stale in stale {
                if let content = try PartContent(adopting: stale, for: header, at: place, unless: isCancelled) {
                    return content
                }
            }
        }
        if place.folder.hasRoom(for: tree, beside: fullest) {
            do {
                return try PartContent(creating: header, at: place)
            } catch {
                guard error.code == .destinationFull else { throw error }
            }
        }
        // Nothing is given up for what cannot be put in place.
        try place.folder.requireAbsent(tree.label, place.naming)
        guard place.folder.hasRoom(for: tree, inPlaceOf: stale) else {
            throw DocumentError(.destinationFull, tree.label.description, underlyingError: .noSpace)
        }
        for other in stale.dropFirst() { bases.add(other, at: place) }
        bases.giveUp()
        if let content = try PartContent(rewriting: fullest, for: header, at: place) { return content }
        bases.add(fullest, at: place)
        bases.giveUp()
        return nil
    }

    /// Looks for what the missing files can be built upon.
    private func findBases(_ copies: [OlderCopy]) {
        guard let content else { return }
        content.makeRoom()
        if let aside = content.openAside() { bases.add(aside: aside) { content.lacks(file: $0) } }
        for copy in copies { bases.add(copy) { content.lacks(file: $0) } }
        if let remnants = content.remnants { bases.add(remnants) { content.lacks(file: $0) } }
    }

    /// Chunks that have not come yet, rising, at most ``DocumentWriter/rangeLimit`` ranges of them.
    func missing() throws(DocumentError) -> [Range<UInt64>] {
        try thread.perform { () throws(DocumentError) in
            try self.requireContent().verified.missing(
                in: self.tree.layout.allChunks, limit: DocumentWriter.rangeLimit)
        }
    }

    /// How far it is.
    func progress() throws(DocumentError) -> DocumentWriter.Progress {
        try thread.perform { () throws(DocumentError) in try self.currentProgress() }
    }

    /// How large the pieces are that signatures are of; nil where there is nothing to build upon.
    func pieceSize() throws(DocumentError) -> PieceSize? {
        try thread.perform { () throws(DocumentError) in self.bases.pieceSize }
    }

    /// What tells another device which bytes of older copies are here; nil when all is told. After that it is told
    /// again.
    func nextSignatures() throws(DocumentError) -> SignatureBatch? {
        try thread.perform { () throws(DocumentError) in self.bases.nextSignatures() }
    }

    /// The records of these chunks come next.
    func begin(_ ranges: [Range<UInt64>]) throws(DocumentError) {
        try thread.perform { () throws(DocumentError) in
            guard
                let verifier = ChunkVerifier(
                    layout: self.tree.layout, ranges: ranges, label: self.tree.label, checks: self.checks)
            else {
                throw DocumentError(.badRange, self.tree.label.description)
            }
            self.verifier = consume verifier
        }
    }

    /// Verifies and writes the next bytes.
    ///
    /// - Returns: how far it is by now.
    func write(_ bytes: Buffer) throws(DocumentError) -> DocumentWriter.Progress {
        try thread.perform { () throws(DocumentError) in
            let content = try self.requireContent()
            let start = MonotonicClock.nanoseconds()
            defer { self.total += MonotonicClock.nanoseconds() - start }
            do throws(DocumentError) {
                try bytes.withBytes { (bytes) throws(DocumentError) in
                    try self.verifier?.receive(
                        bytes,
                        decode: { (encoding, payload, room) throws(DocumentError) in
                            let isThere = try self.decoder.decode(encoding, payload, into: room, from: self.bases)
                            if !isThere { self.bases.noteMiss() }
                            return isThere
                        },
                        handle: { (event) throws(DocumentError) in try content.take(event) })
                }
            } catch {
                // What has come before it is kept, where the disk has not failed as well.
                try? content.note()
                throw error
            }
            try content.note()
            return try self.currentProgress()
        }
    }

    /// The records that were begun have ended.
    ///
    /// - Throws: `incomplete` when something is missing.
    func finish() throws(DocumentError) {
        try thread.perform { () throws(DocumentError) in
            try self.verifier?.finish()
            self.bases.endRequest()
        }
    }

    /// Puts the document in place, or throws what is wrong; then the part is still there.
    ///
    /// - Throws: `cancelled` where the task that calls it is cancelled meanwhile.
    func commit() throws(DocumentError) -> FilePath {
        try perform { (isCancelled) throws(DocumentError) in
            let path = try self.requireContent().commit(unless: isCancelled)
            self.bases.removeStale()
            return path
        }
    }

    /// Does on the thread what takes long, and may ask whether the task that waits for it was cancelled meanwhile.
    private func perform<Value: Sendable>(
        _ body: @escaping @Sendable (_ isCancelled: () -> Bool) throws(DocumentError) -> Value
    ) throws(DocumentError) -> Value {
        let result = withUnsafeCurrentTask { task in
            // UnsafeCurrentTask: what Task has as well can be called from anywhere.
            nonisolated(unsafe) let task = task  // reason: the task waits here for the thread, which may ask it
            return Result { () throws(DocumentError) in
                try thread.perform { () throws(DocumentError) in try body { task?.isCancelled ?? false } }
            }
        }
        return try result.get()
    }

    /// Ends it: keeps the part when a transfer could go on with it, and removes it when not.
    ///
    /// - Returns: bytes that are kept.
    func end() -> UInt64 {
        thread.perform { self.finishContent() }
    }

    /// The same, without waiting for it.
    func endLater() {
        thread.submit { _ = self.finishContent() }
    }

    private func finishContent() -> UInt64 {
        bases.end()
        // Here, and not whenever this object goes: what is open keeps its room on the disk after it was removed.
        defer { content = nil }
        return content?.end() ?? 0
    }

    private func currentProgress() throws(DocumentError) -> DocumentWriter.Progress {
        DocumentWriter.Progress(
            verifiedByteCount: try requireContent().verifiedByteCount,
            keptByteCount: try requireContent().keptByteCount,
            sender: verifier?.senderBottleneck ?? .unknown, bytesToNextRecord: verifier?.bytesToNextRecord ?? 0,
            diskTime: .nanoseconds(try requireContent().diskTime),
            processorTime: .nanoseconds(total - min(total, try requireContent().diskTime)))
    }

    private func requireContent() throws(DocumentError) -> PartContent {
        guard let content else { throw DocumentError(.cancelled, tree.label.description) }
        return content
    }
}
