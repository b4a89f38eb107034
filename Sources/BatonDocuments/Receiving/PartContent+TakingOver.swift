// SPDX-License-Identifier: Apache-2.0

import SystemPackage

extension PartContent {
    /// Moves the unchanged files of an older part folder into this one, and takes note of their chunks.
    ///
    /// The journal says durably which chunks come with the files before the first file is moved. If the process is
    /// killed in between, a file is either here or still in the older part. The next opening takes back what the journal
    /// says of a file that is not here. After a power cut the chunks are read and compared.
    ///
    /// - Throws: `stateUnavailable`, `busy`, `writeFailed`, ... The files that were moved until then stay here.
    func takeOver(_ older: OlderFolder) throws(DocumentError) {
        guard let folder = part as? RecordedPartFolder, journal.isThere, !older.unchanged.isEmpty else { return }
        // The journal must not vouch for anything else that has the name of a file.
        for file in older.unchanged { try folder.remove(file: file.file) }
        var chunks = try journal.announce(older, in: tree.layout)
        var failure: DocumentError?
        for file in older.unchanged {
            do throws(DocumentError) {
                if failure == nil, try folder.take(file, from: older) { continue }
            } catch {
                failure = error
            }
            let lost = tree.layout.chunks(ofFile: file.file)
            for chunk in chunks.present(in: lost).joined() { journal.lose(chunk) }
            chunks.remove(lost)
        }
        journal.writeLosses()
        older.beginSynchronisation()
        journal.expectSynchronisation()
        do {
            try part.synchronize()
        } catch {
            // Both journals say that this has not ended, so everything is read again the next time.
            leave(chunks)
            throw error
        }
        older.endSynchronisation()
        journal.vouch()
        insert(chunks)
        if let failure { throw failure }
    }

    /// Bytes that files which have not come still need on the disk. Files with holes count nothing: nobody knows what
    /// of them comes.
    var unreservedByteCount: UInt64 {
        let block = folder.blockSize
        return (0..<tree.layout.fileCount).reduce(0) { sum, file in
            guard lacks(file: file), !tree.isSparse(file: file) else { return sum }
            let size = tree.layout.size(ofFile: file)
            let onDisk = size > .max - block ? size : (size + block - 1) / block * block
            return sum + onDisk - min(onDisk, part.heldByteCount(ofFile: file))
        }
    }
}
