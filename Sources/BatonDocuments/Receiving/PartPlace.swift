// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// The destination of a part, with everything that making one needs.
struct PartPlace: Sendable {
    let folder: DestinationFolder
    let ledger: PartFileLedger
    let umask: mode_t
    /// The folder of the ledger. A confined thread cannot open it.
    let records: RecordFolder
    var naming = DocumentNaming.own

    /// Makes the record of a part durable, and the names of part, record and journal. A journal that vouches for chunks
    /// is of no use if a power cut takes these away.
    ///
    /// - Throws: `stateUnavailable`, `busy`; what the disk of the destination says: `writeFailed`, ...
    func synchronize(_ record: PartFileRecord) throws(DocumentError) {
        try ledger.synchronize(record, in: records)
        do throws(Errno) {
            try folder.synchronize()
        } catch {
            throw DocumentError(writingFailed: error, folder.path.displayed)
        }
    }
}
