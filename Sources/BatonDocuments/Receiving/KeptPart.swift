// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
package import SystemPackage

/// The part of a document that came before its transfer was interrupted.
package struct KeptPart: Sendable, Hashable {
    /// Eight letters and digits, which are in the part's file name as well.
    package let id: String
    /// The document's name at its origin.
    package let name: [UInt8]
    /// The device that offered the document.
    package let origin: String
    /// The destination folder.
    package let folder: FilePath
    /// Bytes of the document that came, and are not sent again unless the disk has lost them.
    package let bytes: UInt64
    /// Bytes of the document.
    package let total: UInt64
    /// When the last of it came, in seconds since 1970.
    package let changed: UInt64
}

extension PartFileLedger {
    /// The parts that no transfer uses at this moment, the newest first.
    ///
    /// - Throws: `busy`, `stateUnavailable`.
    package func keptParts() throws(DocumentError) -> [KeptPart] {
        var parts: [KeptPart] = []
        for (record, summary) in try summaries() {
            let journal = journal(of: record)
            guard
                let content = try? TransferJournal.content(at: journal),
                let status = try? SystemCalls.status(at: journal)
            else { continue }
            let tree = content.header.tree
            parts.append(
                KeptPart(
                    id: record.tag, name: summary.label.bytes, origin: summary.origin, folder: record.folder,
                    bytes: content.all.byteCount(in: tree.layout), total: tree.size,
                    changed: UInt64(clamping: status.st_mtim.tv_sec)))
        }
        return parts
    }

    /// The result of deleting a part.
    package enum Discarding: Sendable {
        /// The part is gone, and so is what the node knew of it.
        case done
        /// A transfer uses the part. Nothing has changed.
        case inUse
        /// The disk of the part is not there or does not let it go. Nothing has changed.
        case unreachable
    }

    /// Deletes a part and what the node knows of it.
    package func discard(_ part: KeptPart) -> Discarding {
        guard let record = record(tagged: part.id) else { return .done }
        guard take(record) else { return .inUse }
        switch record.removePart() {
        case .removed, .gone, .doesNotFit:
            remove(record)
            return .done
        case .unreachable:
            release(record)
            return .unreachable
        }
    }
}
