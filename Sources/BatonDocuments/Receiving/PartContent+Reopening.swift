// SPDX-License-Identifier: Apache-2.0

import SystemPackage

/// How a part and its journal are opened that an earlier transfer has left.
extension PartContent {
    /// Whether an error of opening a part says that nobody can go on with it, and not only that the disk does not
    /// answer.
    static func isOfNoUse(after error: DocumentError) -> Bool {
        // Where it is the destination that cannot be written to, a new part ends the same way.
        error.code == .incomplete || error.code == .destinationNotWritable
    }

    /// Reads what the journal of a part says.
    ///
    /// - Throws: `incomplete` where it is not there any more, or the disk has damaged it; `stateUnavailable`, `busy`
    ///   where nobody knows what it says.
    static func readJournal(
        of unfinished: UnfinishedDocument, at place: PartPlace
    ) throws(DocumentError) -> (journal: TransferJournal, content: TransferJournal.Content) {
        let found: (journal: TransferJournal, content: TransferJournal.Content)?
        do throws(Errno) {
            found = try TransferJournal.open(unfinished.journal, boot: place.boot)
        } catch {
            guard error.saysLost else { throw place.ledger.failure(error) }
            found = nil
        }
        guard let found else { throw DocumentError(.incomplete, unfinished.header.tree.label.description) }
        return found
    }

    /// Opens a part of which the journal says this.
    ///
    /// - Throws: `incomplete` where it is not what was recorded.
    static func reopen(
        _ record: PartFileRecord, _ content: TransferJournal.Content, at place: PartPlace
    ) throws(DocumentError) -> any Part {
        let tree = content.header.tree
        guard let file = tree[0].file else { return try RecordedPartFolder(reopening: record, tree, at: place) }
        return try PartFile(
            reopening: record, for: tree.label, file, modified: tree[0].modified, permissions: tree[0].permissions,
            at: place)
    }

    /// Reads a chunk of a part from the disk, and compares it. What the disk does not give back is not there.
    ///
    /// - Throws: that its file could not be opened, and nobody knows.
    static func isThere(
        _ place: ChunkLayout.Place, _ checksum: ChunkChecksum, in part: any Part, _ room: UnsafeMutableRawBufferPointer
    ) throws(DocumentError) -> Bool {
        let bytes = UnsafeMutableRawBufferPointer(rebasing: room[..<place.size])
        part.leaveCache(place.range, ofFile: place.file)
        do throws(DocumentError) {
            return try part.read(file: place.file, at: place.offset, into: bytes) == place.size
                && ChunkChecksum(of: UnsafeRawBufferPointer(bytes)) == checksum
        } catch {
            guard error.code == .readFailed else { throw error }
            return false
        }
    }
}
