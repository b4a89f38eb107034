// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import Synchronization
package import SystemPackage

/// The unfinished documents of a node: a transfer goes on with them, and a node that was killed removes at its next
/// start the parts that no transfer can go on with.
///
/// Each part has a small record in a folder of the node's state (``PartFileRecord``). It is made before the part and
/// removed after it. Only a file with the recorded name *and* inode, in that folder, is ever removed. A part that is
/// gone is forgotten only if its folder is on the recorded file system, and not below the mount point of a disk that is
/// not mounted. Beside the record is the part's journal (``TransferJournal``).
///
/// One process at a time may use a state folder, which the node's own lock ensures. The ledger is safe to use from any
/// thread; every operation blocks on the disk.
package final class PartFileLedger: Sendable {
    /// The most records: 256. It bounds the folder, and the transfers that one node writes at once.
    package static let recordLimit = 256
    /// The time for which an unfinished document is kept: 7 days.
    package static let unfinishedLifetime: Duration = .seconds(7 * 24 * 3600)
    /// The most unfinished documents of one device: 16. The oldest beyond it go when another one is begun.
    package static let unfinishedLimitOfDevice = 16
    /// The time for which the record of an unreachable folder is kept, such as on an unplugged disk: 30 days.
    package static let unreachableLifetime: Duration = .seconds(30 * 24 * 3600)

    private typealias Summary = (record: PartFileRecord, summary: JournalSummary, changed: Int)

    private let folder: FilePath
    /// The tags of the records that a transfer uses.
    private let tags = Mutex(Set<String>())

    /// The ledger in `stateFolder`, which is made (0700) if need be; its parent has to exist.
    ///
    /// - Throws: `stateUnavailable`.
    package init(stateFolder: FilePath) throws(DocumentError) {
        folder = stateFolder
        do throws(Errno) {
            do throws(Errno) {
                try SystemCalls.call { stateFolder.withPlatformString { mkdir($0, 0o700) } }
            } catch .fileExists {}
            _ = try SystemCalls.open(stateFolder, O_RDONLY | O_DIRECTORY)
        } catch {
            throw failure(error)
        }
    }

    // MARK: - What is there

    /// Removes the parts of earlier runs that no transfer can go on with: those without an intact journal, and those
    /// older than ``unfinishedLifetime``. Call it once, before the first transfer.
    ///
    /// A part that does not fit its record is left alone and forgotten. A part that cannot be
    /// reached or read at the moment is tried again at the next start.
    ///
    /// - Returns: how many parts were removed.
    @discardableResult
    package func removeLeftovers() throws(DocumentError) -> Int {
        // Earlier versions kept digests of older copies beside parts, and journals that were to replace others.
        for suffix in [".signatures", ".journal-to-be"] {
            for tag in try stems(endingIn: suffix) { unlink(folder.appending(tag + suffix)) }
        }
        var removed = 0
        for tag in try recordTags() {
            do throws(Errno) {
                let journal = path(ofJournal: tag)
                if try age(of: journal) < Self.unfinishedLifetime, try TransferJournal.summary(at: journal) != nil {
                    continue
                }
            } catch {
                guard error.saysGone else { continue }
            }
            if removeLeftover(tag) { removed += 1 }
        }
        return removed
    }

    /// Removes a part, and forgets it if there is nothing to remove.
    ///
    /// - Returns: whether it was removed.
    private func removeLeftover(_ tag: String) -> Bool {
        let path = path(ofRecord: tag)
        let removal: PartFileRecord.Removal
        do throws(Errno) {
            removal = try PartFileRecord(readingFrom: path)?.removePart() ?? .doesNotFit
        } catch {
            // Without the record nobody would ever know where the part is.
            removal = error.saysGone ? .doesNotFit : .unreachable
        }
        let isOld = (try? age(of: path)).map { $0 > Self.unreachableLifetime } ?? false
        if removal != .unreachable || isOld { forget(tag) }
        return removal == .removed
    }

    /// Unfinished documents that no transfer uses at this moment, the newest first. A journal that is damaged or gone
    /// is passed over.
    ///
    /// - Parameters:
    ///   - isWanted: whether to read what a document consists of, which can be some 25 MB.
    ///   - take: what is wanted of it.
    func unfinished<Value>(
        where isWanted: (PartFileRecord, JournalSummary) -> Bool = { _, _ in true },
        _ take: (UnfinishedDocument) -> Value
    ) throws(DocumentError) -> [Value] {
        var found: [Value] = []
        for (record, summary, changed) in try summaries() where isWanted(record, summary) {
            let journal = journal(of: record)
            let content = try passingOver { () throws(Errno) in try TransferJournal.content(at: journal) }
            guard let content else { continue }
            found.append(take(UnfinishedDocument(record: record, content: content, changed: changed)))
        }
        return found
    }

    /// Unfinished parts of a document in any version: of the same device, name and folder, the newest first. The oldest
    /// of the device's other documents beyond ``unfinishedLimitOfDevice`` are removed: where a rule accepts its
    /// documents, it can begin as many as it likes.
    ///
    /// Another document of that name is left alone, unless it has the same version and so the same bytes.
    ///
    /// - Parameter header: what is to be received.
    func unfinished(
        of header: JournalHeader, in folder: DestinationFolder
    ) throws(DocumentError) -> [UnfinishedDocument] {
        let wanted = JournalSummary(header, header.encodedTree)
        let isWanted = { (record: PartFileRecord, summary: JournalSummary) in
            record.folder == folder.resolvedPath && summary.mayBe(wanted)
        }
        let others = try summaries().filter { $0.summary.origin == header.origin && !isWanted($0.record, $0.summary) }
        for other in others.dropFirst(Self.unfinishedLimitOfDevice) where take(other.record) {
            removePart(of: other.record)
        }
        return try unfinished(where: isWanted) { $0 }
    }

    /// The parts that no transfer uses at this moment, the newest first.
    ///
    /// - Throws: `busy`, `stateUnavailable`.
    package func keptParts() throws(DocumentError) -> [KeptPart] {
        try unfinished {
            KeptPart(
                id: $0.record.tag, name: $0.content.header.tree.label.bytes, origin: $0.content.header.origin,
                folder: $0.record.folder, bytes: $0.byteCount, total: $0.content.header.tree.size,
                changed: UInt64(clamping: $0.changed))
        }
    }

    /// The summary of each journal that nobody uses, and when it was last written, the newest first.
    private func summaries() throws(DocumentError) -> [Summary] {
        var found: [Summary] = []
        for tag in try recordTags() {
            try passingOver { () throws(Errno) in
                guard
                    let record = try PartFileRecord(readingFrom: path(ofRecord: tag)),
                    let summary = try TransferJournal.summary(at: path(ofJournal: tag))
                else { return }
                found.append((record, summary, try SystemCalls.status(at: path(ofJournal: tag)).st_mtim.tv_sec))
            }
        }
        return found.sorted { $0.changed > $1.changed }
    }

    /// Reads something of one part; nil if that fails for good.
    @discardableResult
    private func passingOver<Value>(_ read: () throws(Errno) -> Value?) throws(DocumentError) -> Value? {
        do throws(Errno) {
            return try read()
        } catch {
            guard !error.mayPass else { throw failure(error) }
            return nil
        }
    }

    // MARK: - One part

    /// Takes an unfinished document for one transfer.
    ///
    /// - Returns: whether nobody else has it.
    func take(_ record: PartFileRecord) -> Bool {
        tags.withLock { $0.count < Self.recordLimit && $0.insert(record.tag).inserted }
    }

    /// Leaves a part to another transfer.
    func release(_ record: PartFileRecord) {
        tags.withLock { _ = $0.remove(record.tag) }
    }

    /// Records a part file that is about to be made (`inode` 0) or was just made.
    ///
    /// - Throws: `stateUnavailable`, `busy`. A record that there was before stays then.
    func enter(_ record: PartFileRecord) throws(DocumentError) {
        let isNew = take(record)
        guard isNew || tags.withLock({ $0.contains(record.tag) }) else { throw DocumentError(.busy, "a document") }
        do {
            try record.write(to: path(ofRecord: record.tag))
        } catch {
            if isNew { remove(record) }
            throw failure(error)
        }
    }

    /// Forgets a part file that does not exist any more under its name.
    func remove(_ record: PartFileRecord) {
        forget(record.tag)
        release(record)
    }

    /// Removes a part that was taken. If that fails, its record stays for a later attempt.
    ///
    /// - Parameter folder: its folder; nil, the default, for the one that is at the recorded path.
    @discardableResult
    func removePart(of record: PartFileRecord, in folder: DestinationFolder? = nil) -> PartFileRecord.Removal {
        let removal = folder.map { record.removePart(from: $0.file, on: $0.fileSystem) } ?? record.removePart()
        switch removal {
        case .removed, .gone: remove(record)
        case .doesNotFit, .unreachable: release(record)
        }
        return removal
    }

    /// The result of deleting a part.
    package enum Discarding: Sendable {
        /// The part and its record are gone.
        case done
        /// A transfer uses the part. Nothing has changed.
        case inUse
        /// The disk of the part is not there or does not let it go. Nothing has changed.
        case unreachable
    }

    /// Deletes a part and its record.
    package func discard(_ part: KeptPart) -> Discarding {
        guard let record = try? PartFileRecord(readingFrom: path(ofRecord: part.id)) else { return .done }
        guard take(record) else { return .inUse }
        guard removePart(of: record) != .unreachable else { return .unreachable }
        remove(record)
        return .done
    }

    private func forget(_ tag: String) {
        // The record goes last, because the journal is found by it. If it stays, the next start finds it again.
        unlink(path(ofJournal: tag))
        unlink(path(ofRecord: tag))
    }

    // MARK: - The folder

    /// The folder of the records, to be named in the rules of a confined thread.
    func openFolder() throws(DocumentError) -> OpenEntry {
        do {
            return OpenEntry(.root, try SystemCalls.open(folder, O_RDONLY | O_DIRECTORY))
        } catch {
            throw failure(error)
        }
    }

    /// The meaning of an error of opening, writing or synchronising something in the folder of the records.
    func failure(_ error: Errno) -> DocumentError {
        DocumentError(error.isShortage ? .busy : .stateUnavailable, folder.displayed, underlyingError: error)
    }

    /// The journal of a part.
    func journal(of record: PartFileRecord) -> FilePath { path(ofJournal: record.tag) }

    private func path(ofJournal tag: String) -> FilePath { folder.appending(tag + PartFileRecord.journalSuffix) }

    func path(ofRecord tag: String) -> FilePath { folder.appending(tag + PartFileRecord.suffix) }

    private func age(of file: FilePath) throws(Errno) -> Duration {
        .seconds(max(0, time(nil) - (try SystemCalls.status(at: file).st_mtim.tv_sec)))
    }

    private func unlink(_ file: FilePath) {
        _ = try? SystemCalls.call { file.withPlatformString { Glibc.unlink($0) } }
    }

    /// The tags of the records that no transfer uses.
    private func recordTags() throws(DocumentError) -> [String] {
        let used = tags.withLock { $0 }
        return try stems(endingIn: PartFileRecord.suffix).filter { !used.contains($0) }
    }

    private func stems(endingIn suffix: String) throws(DocumentError) -> [String] {
        do {
            // Opened anew each time, because a descriptor remembers how far it was read.
            let names = try SystemCalls.names(in: try SystemCalls.open(folder, O_RDONLY | O_DIRECTORY), atLeast: .max)
            return names.map { String(decoding: $0, as: UTF8.self) }.filter { $0.hasSuffix(suffix) }
                .map { String($0.dropLast(suffix.count)) }.sorted()
        } catch {
            throw failure(error)
        }
    }
}

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

/// A part that an earlier transfer left, and what is known of it.
struct UnfinishedDocument {
    let record: PartFileRecord
    let content: TransferJournal.Content
    /// When the last of it came, in seconds since 1970.
    let changed: Int

    /// Bytes of it that came.
    var byteCount: UInt64 { content.all.byteCount(in: content.header.tree.layout) }
}
