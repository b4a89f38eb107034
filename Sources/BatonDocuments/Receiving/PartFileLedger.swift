// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import Synchronization
package import SystemPackage

/// The documents that were begun and not finished, so that a transfer goes on with them, and that a node that was
/// killed removes at its next start what no transfer can go on with.
///
/// Each part has one small record in a folder of the node's state: folder, name, inode and file system. The record is
/// made before the part and removed after it. A record is trusted only as far as it fits: only what has that name *and*
/// inode, in that folder, is removed; and what has gone from there is forgotten only where the folder is on that file
/// system, and not on the one below the mount point of a disk that is not mounted. Beside it is the part's journal
/// (``TransferJournal``), from the moment on that it is received.
///
/// One process at a time may use a state folder (the node's own lock sees to that). Safe to use from any thread; every
/// operation blocks on the disk.
package final class PartFileLedger: Sendable {
    /// How many records there can be: 256. It bounds the folder, and the transfers that one node writes at once.
    package static let recordLimit = 256
    /// An unfinished document is kept for this long: 7 days.
    package static let unfinishedLifetime: Duration = .seconds(7 * 24 * 3600)
    /// How many unfinished documents are kept; beyond it the oldest goes at the next start: 64.
    package static let unfinishedLimit = 64
    /// How many unfinished documents of one device are kept when another one of it is begun; beyond it the oldest goes:
    /// 16.
    package static let unfinishedLimitOfDevice = 16
    /// Records of folders that cannot be reached (a disk that is not plugged in or not mounted) are kept this long: 30
    /// days.
    package static let unreachableLifetime: Duration = .seconds(30 * 24 * 3600)

    private let folder: FilePath
    private let names = Mutex(Set<String>())

    /// The ledger in `stateFolder`, which is made (0700) if need be; its parent has to exist.
    ///
    /// - Throws: `stateUnavailable`.
    package init(stateFolder: FilePath) throws(DocumentError) {
        folder = stateFolder
        do {
            try SystemCalls.call { stateFolder.withPlatformString { mkdir($0, 0o700) } }
        } catch .fileExists {
            let kind = (try? SystemCalls.status(at: stateFolder))?.st_mode ?? 0
            guard kind & S_IFMT == S_IFDIR else {
                throw DocumentError(.stateUnavailable, stateFolder.displayed, underlyingError: .notDirectory)
            }
        } catch {
            throw DocumentError(.stateUnavailable, stateFolder.displayed, underlyingError: error)
        }
    }

    /// Removes the parts that an earlier run left behind and no transfer can go on with: without a journal, of
    /// documents of more than ``unfinishedLifetime`` ago, and beyond ``unfinishedLimit``. Call it once, before the
    /// first transfer.
    ///
    /// A part that does not fit its record is left alone and forgotten; a folder that cannot be reached, or whose disk
    /// is not mounted, is tried again at the next start, and so is what is written down of a part and cannot be read at
    /// the moment.
    ///
    /// - Returns: how many parts were removed.
    /// - Throws: `stateUnavailable`.
    @discardableResult
    package func removeLeftovers() throws(DocumentError) -> Int {
        // The version before has kept digests of older copies beside parts, and journals that were to replace others.
        for suffix in [".signatures", ".journal-to-be"] {
            for name in try names(endingIn: suffix) { unlink(folder.appending(name)) }
        }
        var removed = 0
        var kept: [(name: String, age: Duration)] = []
        for name in try recordNames() where !isInUse(name) {
            do throws(Errno) {
                if let age = try usableAge(ofJournal: journal(ofRecord: name)) {
                    kept.append((name, age))
                    continue
                }
            } catch {
                continue
            }
            if removeLeftover(name) { removed += 1 }
        }
        kept.sort { $0.age < $1.age }
        for (name, _) in kept.dropFirst(Self.unfinishedLimit) where removeLeftover(name) { removed += 1 }
        return removed
    }

    /// How old a journal is that a transfer can go on with; nil for another one.
    ///
    /// - Throws: that nobody knows at the moment.
    private func usableAge(ofJournal journal: FilePath) throws(Errno) -> Duration? {
        do throws(Errno) {
            let age = try age(of: journal)
            guard age < Self.unfinishedLifetime, try TransferJournal.isIntact(at: journal) else { return nil }
            return age
        } catch {
            guard error.saysGone else { throw error }
            return nil
        }
    }

    /// Unfinished documents that nobody goes on with at this moment, the newest first. What cannot be read of one is
    /// passed over, unless that may pass: a document that is there would be received anew.
    ///
    /// - Parameters:
    ///   - isWanted: whether one is looked for. What the others consist of is not read.
    ///   - fits: whether it is, by what it consists of. What the others consist of is not kept: each can be some 25 MB.
    /// - Throws: `busy`, `stateUnavailable`: what there is cannot be read at the moment.
    func unfinished(
        where isWanted: (PartFileRecord, JournalSummary) -> Bool = { _, _ in true },
        fitting fits: (JournalHeader) -> Bool = { _ in true }
    ) throws(DocumentError) -> [UnfinishedDocument] {
        var found: [UnfinishedDocument] = []
        for (record, summary) in try summaries() where isWanted(record, summary) {
            let journal = journal(of: record)
            let header = try passingOver { () throws(Errno) in try TransferJournal.header(at: journal) }
            guard let header, fits(header) else { continue }
            found.append(UnfinishedDocument(record: record, header: header, journal: journal))
        }
        return found
    }

    /// Reads something of one part; nil where that does not go, and will not go soon.
    private func passingOver<Value>(_ read: () throws(Errno) -> Value?) throws(DocumentError) -> Value? {
        do throws(Errno) {
            return try read()
        } catch {
            guard !error.mayPass else { throw failure(error) }
            return nil
        }
    }

    /// Removes the oldest of what is unfinished of a device, beyond ``unfinishedLimitOfDevice``: it can begin as many
    /// as it likes where its user accepts them by a rule.
    ///
    /// - Parameter isSpared: what is about to be gone on with.
    func removeExcess(
        of origin: String, except isSpared: (PartFileRecord, JournalSummary) -> Bool
    ) throws(DocumentError) {
        let all = try summaries().filter { $0.summary.origin == origin && !isSpared($0.record, $0.summary) }
        for (record, _) in all.dropFirst(Self.unfinishedLimitOfDevice) where take(record) {
            removePart(of: record)
        }
    }

    /// Removes a part that was taken. Where that does not go its record stays, so that somebody can later.
    func removePart(of record: PartFileRecord) {
        switch record.removePart() {
        case .removed, .gone: remove(record)
        case .doesNotFit, .unreachable: release(record)
        }
    }

    /// The summary of each journal that nobody uses, the newest first.
    func summaries() throws(DocumentError) -> [(record: PartFileRecord, summary: JournalSummary)] {
        var found: [(record: PartFileRecord, summary: JournalSummary, age: Duration)] = []
        for name in try recordNames() where !isInUse(name) {
            let part = try passingOver { () throws(Errno) in
                let journal = journal(ofRecord: name)
                guard
                    let record = try PartFileRecord(readingFrom: folder.appending(name)),
                    let summary = try TransferJournal.summary(at: journal)
                else { return nil as (PartFileRecord, JournalSummary, Duration)? }
                return (record, summary, try age(of: journal))
            }
            if let part { found.append(part) }
        }
        return found.sorted { $0.age < $1.age }.map { ($0.record, $0.summary) }
    }

    /// The record of a part; nil if there is none that can be read.
    func record(tagged tag: String) -> PartFileRecord? {
        try? PartFileRecord(readingFrom: folder.appending(tag + PartFileRecord.suffix))
    }

    /// Takes an unfinished document for one transfer.
    ///
    /// - Returns: whether nobody else has it.
    func take(_ record: PartFileRecord) -> Bool {
        names.withLock { names in
            guard names.count < Self.recordLimit else { return false }
            return names.insert(record.recordName).inserted
        }
    }

    /// Leaves a part to who may go on with it.
    func release(_ record: PartFileRecord) {
        names.withLock { _ = $0.remove(record.recordName) }
    }

    /// Where the journal of a part is.
    func journal(of record: PartFileRecord) -> FilePath { journal(ofRecord: record.recordName) }

    private func journal(ofRecord name: String) -> FilePath {
        folder.appending(name.dropLast(PartFileRecord.suffix.count) + PartFileRecord.journalSuffix)
    }

    private func isInUse(_ name: String) -> Bool { names.withLock { $0.contains(name) } }

    /// Removes a part, and forgets it where there is nothing to remove.
    ///
    /// - Returns: whether it was removed.
    private func removeLeftover(_ name: String) -> Bool {
        let record = folder.appending(name)
        let removal: PartFileRecord.Removal
        do throws(Errno) {
            removal = try PartFileRecord(readingFrom: record)?.removePart() ?? .doesNotFit
        } catch {
            // Nobody knows where its part is at the moment, and without the record nobody ever would.
            removal = error.saysGone ? .doesNotFit : .unreachable
        }
        switch removal {
        case .removed, .gone, .doesNotFit: forget(name)
        case .unreachable: if isOld(record) { forget(name) }
        }
        return removal == .removed
    }

    /// How long ago a file was last written.
    private func age(of file: FilePath) throws(Errno) -> Duration {
        .seconds(max(0, time(nil) - (try SystemCalls.status(at: file).st_mtim.tv_sec)))
    }

    /// The folder of the records, to be named in the rules of a confined thread.
    func openFolder() throws(DocumentError) -> RecordFolder {
        do {
            return RecordFolder(try SystemCalls.open(folder, O_RDONLY | O_DIRECTORY))
        } catch {
            throw failure(error)
        }
    }

    /// The meaning of an error of opening, writing or synchronising something in the folder of the records.
    func failure(_ error: Errno) -> DocumentError { DocumentError(stateFailed: error, folder.displayed) }

    /// Records a part file that is about to be made (`inode` 0) or was just made.
    ///
    /// - Throws: `stateUnavailable`, `busy`. A record that there was before stays then.
    func enter(_ record: PartFileRecord) throws(DocumentError) {
        let isNew = !isInUse(record.recordName)
        guard !isNew || take(record) else { throw DocumentError(.busy, "a document") }
        do {
            try record.write(to: folder.appending(record.recordName))
        } catch {
            if isNew { remove(record) }
            throw failure(error)
        }
    }

    /// Makes a record durable, and the names in the folder of the records.
    func synchronize(_ record: PartFileRecord, in records: RecordFolder) throws(DocumentError) {
        do throws(Errno) {
            let file = try SystemCalls.open(folder.appending(record.recordName), O_WRONLY | O_NOFOLLOW)
            try SystemCalls.synchronize(file)
            try SystemCalls.synchronize(records.file)
        } catch {
            throw failure(error)
        }
    }

    /// Forgets a part file that does not exist any more under its name.
    func remove(_ record: PartFileRecord) {
        forget(record.recordName)
        names.withLock { _ = $0.remove(record.recordName) }
    }

    private func forget(_ name: String) {
        // A record that stays is looked at again at the next start, and fits nothing then. It is the last to go,
        // because what is beside it is found by it.
        let journal = journal(ofRecord: name)
        unlink(journal)
        unlink(folder.appending(name))
    }

    private func unlink(_ file: FilePath) {
        _ = try? SystemCalls.call { file.withPlatformString { Glibc.unlink($0) } }
    }

    private func isOld(_ record: FilePath) -> Bool {
        guard let age = try? age(of: record) else { return false }
        return age > Self.unreachableLifetime
    }

    private func recordNames() throws(DocumentError) -> [String] { try names(endingIn: PartFileRecord.suffix) }

    private func names(endingIn suffix: String) throws(DocumentError) -> [String] {
        guard let stream = folder.withPlatformString({ opendir($0) }) else {
            throw failure(Errno(rawValue: errno))
        }
        defer { closedir(stream) }
        var found: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                String(cString: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self))
            }
            if name.hasSuffix(suffix) { found.append(name) }
        }
        return found.sorted()
    }
}
