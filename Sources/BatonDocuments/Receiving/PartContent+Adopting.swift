// SPDX-License-Identifier: Apache-2.0

import SystemPackage

extension PartContent {
    /// Writes a document of one file over the part of another version, because there is no room for both.
    ///
    /// - Returns: nil where that part cannot be had, or where there is not even room for its new journal; what is there
    ///   stays then.
    /// - Throws: `destinationFull` where there is no room even so; what came of the other version is kept then.
    convenience init?(
        rewriting stale: UnfinishedDocument, for header: JournalHeader, at place: PartPlace
    ) throws(DocumentError) {
        let tree = header.tree
        guard
            let file = tree[0].file, file.size > 0, stale.header.tree[0].file != nil, place.ledger.take(stale.record)
        else { return nil }
        // Before anything is given up for it.
        let (name, inode) = (stale.record.name, stale.record.inode)
        let journal: TransferJournal
        let part: PartFile
        do throws(DocumentError) {
            guard try place.folder.reopenFile(name, inode: inode, for: tree.label) != nil else {
                place.ledger.release(stale.record)
                return nil
            }
            journal = try Self.replaceJournal(of: stale, header, verified: ChunkSet(), remnants: [0], at: place)
            part = try PartFile(
                reopening: stale.record, for: tree.label, file, modified: tree[0].modified,
                permissions: tree[0].permissions, isOfOtherVersion: true, at: place)
        } catch {
            place.ledger.release(stale.record)
            // The state folder may be on the same disk.
            guard error.code == .stateUnavailable, error.underlyingError == .noSpace else { throw error }
            return nil
        }
        self.init(of: tree, in: part, journal, remnants: [0], at: place)
    }

    /// Has a journal of a document in the place of the one of another version, durably: the old one would vouch for
    /// what is written from now on.
    private static func replaceJournal(
        of stale: UnfinishedDocument, _ header: JournalHeader, verified: ChunkSet, remnants: Set<Int>,
        at place: PartPlace
    ) throws(DocumentError) -> TransferJournal {
        let journal: TransferJournal
        do throws(Errno) {
            try place.folder.requireAnswer(to: .newJournal)
            journal = try TransferJournal.replace(
                at: stale.journal, header, beginningWith: verified, remnants: remnants)
        } catch {
            throw place.ledger.failure(error)
        }
        try place.synchronize(stale.record)
        return journal
    }

    /// Goes on with the folder of another version: files of the same version are left. The others are put aside, for
    /// the new ones to be built upon, or where there is no room for both written over. Those that have another path now
    /// are put aside in any case.
    ///
    /// - Parameter isCancelled: whether nobody waits for it any more: is asked before each chunk that has to be read.
    /// - Returns: nil when there is nothing to go on with; what is there stays then.
    /// - Throws: `cancelled`, ...; what is there stays as well.
    convenience init?(
        adopting stale: UnfinishedDocument, for header: JournalHeader, at place: PartPlace,
        unless isCancelled: () -> Bool = { false }
    ) throws(DocumentError) {
        guard header.tree.isFolder, stale.header.tree.isFolder, place.ledger.take(stale.record) else { return nil }
        let before: (journal: TransferJournal, content: TransferJournal.Content)
        let folder: RecordedPartFolder
        do throws(DocumentError) {
            before = try Self.openJournal(of: stale, at: place)
            folder = try RecordedPartFolder(
                reopening: stale.record, header.tree,
                keeping: before.content.verified.paths(in: before.content.header.tree, missingIn: header.tree),
                at: place)
        } catch {
            place.ledger.release(stale.record)
            guard Self.isOfNoUse(after: error) else { throw error }
            return nil
        }
        let tree = header.tree
        var verified = before.content.verified.carried(from: before.content.header.tree, to: tree)
        let remained = before.content.remnantPaths
        var remnants: Set<Int> = []
        do {
            for chunk in try Self.compared(before.content, with: tree, in: folder, unless: isCancelled) {
                verified.insert(chunk)
            }
            var changed: Set<Int> = []
            for file in 0..<tree.layout.fileCount {
                let chunks = tree.layout.chunks(ofFile: file)
                if verified.containsAny(chunks), try folder.isThere(file: file) {
                    // Of a third version, beside what has come of this one.
                    if remained.contains(tree.entry(ofFile: file).path.bytes) { remnants.insert(file) }
                    continue
                }
                verified.remove(chunks)
                changed.insert(file)
            }
            let hasRoom = folder.hasRoom(keeping: changed) { file in
                !verified.missing(in: tree.layout.chunks(ofFile: file), limit: 1).isEmpty
            }
            for file in changed {
                let staysInPlace = !hasRoom && folder.isRewritable(file: file)
                let isWrittenOver = staysInPlace ? true : try folder.putAside(file: file)
                if isWrittenOver { remnants.insert(file) }
            }
        } catch {
            // It is as good as it was.
            folder.keep()
            throw error
        }
        do {
            _ = before.journal.attempt(before.journal.entryCount)
            // What is said of these chunks has to hold after a power cut as well: no checksum of them is known any
            // more.
            try folder.synchronize()
            // The old journal is what there is until the new one is in its place.
            before.journal.endAttempt()
            try? before.journal.flush()
        } catch {
            _ = before.journal.distrust()
            folder.keep()
            throw error
        }
        let journal: TransferJournal
        do throws(DocumentError) {
            journal = try Self.replaceJournal(of: stale, header, verified: verified, remnants: remnants, at: place)
        } catch {
            folder.keep()
            throw error
        }
        self.init(of: tree, in: folder, journal, verified: verified, remnants: remnants, at: place)
    }

    /// The chunks of files of the same version that may be there, and are.
    private static func compared(
        _ before: TransferJournal.Content, with tree: DocumentTree, in folder: RecordedPartFolder,
        unless isCancelled: () -> Bool
    ) throws(DocumentError) -> [UInt64] {
        guard !before.unsure.isEmpty else { return [] }
        var files: [[UInt8]: Int] = [:]
        for file in 0..<tree.layout.fileCount { files[tree.entry(ofFile: file).path.bytes] = file }
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: ChunkLayout.chunkSize, alignment: 4096)
        defer { room.deallocate() }
        let old = before.header.tree
        var there: [UInt64] = []
        for (chunk, checksum) in before.unsure {
            if isCancelled() { throw DocumentError(.cancelled, tree.label.description) }
            let number = old.layout.place(of: chunk).file
            let entry = old.entry(ofFile: number)
            guard
                let version = entry.file?.version, version != .none, let file = files[entry.path.bytes],
                tree.entry(ofFile: file).file?.version == version
            else { continue }
            let chunks = tree.layout.chunks(ofFile: file)
            let moved = chunks.lowerBound + (chunk - old.layout.chunks(ofFile: number).lowerBound)
            // One that was cut is not read, which would give it its size again: it is asked for anew.
            guard chunks.contains(moved), try folder.isThere(file: file),
                try isThere(tree.layout.place(of: moved), checksum, in: folder, room)
            else { continue }
            there.append(moved)
        }
        return there
    }
}
