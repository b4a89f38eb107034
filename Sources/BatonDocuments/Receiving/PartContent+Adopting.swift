extension PartContent {
    /// Goes on with the folder of another version: files of the same version are left, the others are put aside, for the
    /// new ones to be built upon, and so are those that have another path now.
    ///
    /// - Returns: nil when there is nothing to go on with; what is there stays then.
    convenience init?(
        adopting stale: UnfinishedDocument, for header: JournalHeader, at place: PartPlace
    ) throws(DocumentError) {
        guard header.tree.isFolder, stale.header.tree.isFolder, place.ledger.take(stale.record) else { return nil }
        guard
            let before = try? TransferJournal.open(stale.journal, boot: place.boot),
            let folder = try? RecordedPartFolder(
                reopening: stale.record, header.tree,
                keeping: before.content.verified.paths(in: before.content.header.tree, missingIn: header.tree),
                at: place)
        else {
            place.ledger.release(stale.record)
            return nil
        }
        let tree = header.tree
        var verified = before.content.verified.carried(from: before.content.header.tree, to: tree)
        do {
            for file in 0..<tree.layout.fileCount {
                let chunks = tree.layout.chunks(ofFile: file)
                if verified.containsAny(chunks), folder.isThere(file: file) { continue }
                verified.remove(chunks)
                try folder.putAside(file: file)
            }
        } catch {
            // It is as good as it was.
            folder.keep()
            throw error
        }
        do {
            _ = before.journal.attempt(before.journal.entryCount)
            // What is said of these chunks has to hold after a power cut as well: no checksum of them is known any more.
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
        do {
            journal = try TransferJournal.replace(at: stale.journal, header, beginningWith: verified)
            try place.synchronize(stale.record)
        } catch {
            // Without a journal of its own nothing may be written: the old one would vouch for it.
            folder.keep()
            throw DocumentError(.stateUnavailable, tree.label.description, underlyingError: error)
        }
        self.init(of: tree, in: folder, journal, verified: verified, at: place)
    }
}
