// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// Where a part is made, and by whose leave.
struct PartPlace: Sendable {
    let folder: DestinationFolder
    let ledger: PartFileLedger
    let umask: mode_t
    /// The present run of the system. A confined thread cannot ask for it.
    let boot: BootID
    /// The folder of the ledger. A confined thread cannot open it.
    let records: RecordFolder
    var naming = DocumentNaming.own

    /// Makes durable who a part is of, and that it, its record and its journal have names: what a journal vouches for
    /// is of no use where a power cut takes these away.
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
