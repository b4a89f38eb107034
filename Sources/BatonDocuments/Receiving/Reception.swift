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
    private let bases: Bases
    /// See ``DocumentWriter/Start``. It is found out in `init`.
    private(set) var start = DocumentWriter.Start.unchanged
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
            if try self.isChange(identity, since: parts, at: place) { self.start = .changed(keepsOlder: true) }
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
        var others: [UnfinishedDocument] = []
        for unfinished in try found.filter({ $0.header.tree.isSameVersion(as: tree) }).fullestFirst(at: place) {
            guard content == nil else {
                others.append(unfinished)
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
        guard !tree.isFolder else {
            let others = (others + stale).filter { bases.take($0, at: place) }
            return try folder(of: header, reopened: content, others: others, at: place, unless: isCancelled)
        }
        if content == nil { content = try file(of: header, afterOthers: stale, at: place) }
        // If there is none, there is no room for both, and what there was of others has gone.
        guard let content else { return try PartContent(creating: header, at: place) }
        for other in others + stale where bases.take(other, at: place) && !bases.removeExcess() {
            bases.add(other, at: place)
        }
        return content
    }

    /// The part of a folder, with the files of others in it that have not changed. What else is in others is built
    /// upon, or goes if the disk has no room for both.
    ///
    /// - Parameter others: parts that were taken, the fullest first.
    private func folder(
        of header: JournalHeader, reopened: PartContent?, others: [UnfinishedDocument], at place: PartPlace,
        unless isCancelled: () -> Bool
    ) throws(DocumentError) -> PartContent {
        var unchanged = Set<Int>()
        var folders: [OlderFolder] = []
        for other in others {
            guard let folder = try OlderFolder(other, at: place) else { continue }
            let isLacking = { file in !unchanged.contains(file) && reopened?.lacksAll(ofFile: file) ?? true }
            try folder.findUnchanged(in: tree, where: isLacking, unless: isCancelled)
            unchanged.formUnion(folder.unchanged.map(\.file))
            folders.append(folder)
        }
        let content: PartContent
        if let reopened {
            content = reopened
        } else {
            content = try newFolder(header, unchanged, givenUp: (folders, others), at: place)
        }
        for folder in folders { try content.takeOver(folder) }
        let (wanted, free) = (content.unreservedByteCount, place.folder.freeByteCount ?? .max)
        if wanted > free, wanted - free <= Self.byteCount(folders, others, at: place) {
            giveUpOthers()
            return content
        }
        bases.removeExcess()
        for folder in folders { bases.add(folder) { content.lacks(file: $0) } }
        for other in others { bases.add(other, at: place) }
        return content
    }

    /// A new part folder.
    ///
    /// - Parameters:
    ///   - unchanged: files that are moved into it.
    ///   - others: parts that go if there is no room without that.
    /// - Throws: `destinationFull`, also if there is no room even so; ...
    private func newFolder(
        _ header: JournalHeader, _ unchanged: Set<Int>, givenUp others: ([OlderFolder], [UnfinishedDocument]),
        at place: PartPlace
    ) throws(DocumentError) -> PartContent {
        do throws(DocumentError) {
            return try PartContent(creating: header, withoutRoomFor: unchanged, at: place)
        } catch {
            guard error.code == .destinationFull, !others.1.isEmpty else { throw error }
            let given = Self.byteCount(others.0, others.1, at: place)
            try place.folder.requireRoom(for: tree, without: unchanged, given: given)
            return try PartContent(creating: header, withoutRoomFor: Set(0..<tree.layout.fileCount), at: place)
        }
    }

    /// Bytes of the disk that parts take, without the files that are moved out of them.
    private static func byteCount(
        _ folders: [OlderFolder], _ others: [UnfinishedDocument], at place: PartPlace
    ) -> UInt64 {
        let files = others.filter { !$0.header.tree.isFolder }
        return folders.reduce(0) { $0 + $1.restByteCount } + files.reduce(0) { $0 + place.folder.byteCount(of: $1) }
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
        for other in others where other.record != unfinished.record { _ = bases.take(other, at: place) }
        giveUpOthers()
        return try PartContent(reopening: unfinished, at: place, unless: isCancelled)
    }

    /// The part of a file that came in another version: what came is what the new one is built upon, and goes when
    /// that is whole, or at once if the disk has no room for both.
    ///
    /// - Returns: nil if nothing of another version is there any more.
    private func file(
        of header: JournalHeader, afterOthers stale: [UnfinishedDocument], at place: PartPlace
    ) throws(DocumentError) -> PartContent? {
        guard let fullest = stale.first else { return nil }
        let seemsFree = place.folder.hasRoom(for: tree, beside: fullest)
        if seemsFree {
            do {
                return try PartContent(creating: header, at: place)
            } catch {
                guard error.code == .destinationFull else { throw error }
            }
        }
        // Nothing is given up for what cannot be put in place.
        try place.folder.requireAbsent(tree.label, place.naming)
        // What the disk called free and did not give, because of a quota, does not count.
        guard place.folder.hasRoom(for: tree, inPlaceOf: stale, countingFree: !seemsFree) else {
            throw DocumentError(.destinationFull, tree.label.description, underlyingError: .noSpace)
        }
        for other in stale { _ = bases.take(other, at: place) }
        giveUpOthers()
        return nil
    }

    /// Removes the other parts that were taken: the disk has no room for them.
    private func giveUpOthers() {
        if bases.giveUp() { start = .changed(keepsOlder: false) }
    }

    /// Looks for what the missing files can be built upon.
    private func findBases(_ copies: [OlderCopy]) {
        guard let content else { return }
        for copy in copies { bases.add(copy) { content.lacks(file: $0) } }
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
            guard let verifier = ChunkVerifier(layout: self.tree.layout, ranges: ranges, label: self.tree.label)
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
                            try self.decoder.decode(encoding, payload, into: room, from: self.bases)
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
