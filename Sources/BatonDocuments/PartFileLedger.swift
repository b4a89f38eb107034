import BatonEventLoop
import Glibc
import Synchronization
public import SystemPackage

/// The files that were begun and not finished, so that a node that was killed removes them at its next start.
///
/// Each part file has one small record in a folder of the node's state: folder, name and inode. The record is made
/// before the part file and removed after it. A record is trusted only as far as it fits: only a regular file of that
/// name *and* inode, in that folder, is removed.
///
/// One process at a time may use a state folder (the node's own lock sees to that). Safe to use from any thread; every
/// operation blocks on the disk.
public final class PartFileLedger: Sendable {
    /// How many records there can be: 256. It bounds the folder, and the transfers that one node writes at once.
    public static let recordLimit = 256
    /// Records of folders that cannot be reached (a disk that is not plugged in) are kept this long: 30 days.
    public static let unreachableLifetime: Duration = .seconds(30 * 24 * 3600)

    private let folder: FilePath
    private let names = Mutex(Set<String>())

    /// The ledger in `stateFolder`, which is made (0700) if need be; its parent has to exist.
    ///
    /// - Throws: `stateUnavailable`.
    public init(stateFolder: FilePath) throws(DocumentError) {
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

    /// Removes the part files that an earlier run left behind. Call it once, before the first transfer.
    ///
    /// What does not fit its record is left alone and forgotten; a folder that cannot be reached is tried again at the
    /// next start.
    ///
    /// - Returns: how many part files were removed.
    /// - Throws: `stateUnavailable`.
    @discardableResult
    public func removeLeftovers() throws(DocumentError) -> Int {
        var removed = 0
        for name in try recordNames().prefix(Self.recordLimit) where !names.withLock({ $0.contains(name) }) {
            let record = folder.appending(name)
            switch PartFileRecord(readingFrom: record)?.removePartFile() ?? .doesNotFit {
            case .removed:
                removed += 1
                forget(record)
            case .doesNotFit:
                forget(record)
            case .unreachable:
                if isOld(record) { forget(record) }
            }
        }
        return removed
    }

    /// The folder of the records, to be named in the rules of a confined thread.
    func openFolder() throws(DocumentError) -> OwnedDescriptor {
        do {
            return try SystemCalls.open(folder, O_RDONLY | O_DIRECTORY)
        } catch {
            throw DocumentError(.stateUnavailable, folder.displayed, underlyingError: error)
        }
    }

    /// Records a part file that is about to be made (`inode` 0) or was just made.
    func enter(_ record: PartFileRecord) throws(DocumentError) {
        let name = record.recordName
        let fits = names.withLock { names in
            if names.contains(name) { return true }
            guard names.count < Self.recordLimit else { return false }
            names.insert(name)
            return true
        }
        guard fits else { throw DocumentError(.busy, "a document") }
        do {
            try record.write(to: folder.appending(name))
        } catch {
            remove(record)
            throw DocumentError(.stateUnavailable, folder.displayed, underlyingError: error)
        }
    }

    /// Forgets a part file that does not exist any more under its name.
    func remove(_ record: PartFileRecord) {
        forget(folder.appending(record.recordName))
        names.withLock { _ = $0.remove(record.recordName) }
    }

    private func forget(_ record: FilePath) {
        // A record that stays is looked at again at the next start, and fits nothing then.
        _ = try? SystemCalls.call { record.withPlatformString { unlink($0) } }
    }

    private func isOld(_ record: FilePath) -> Bool {
        guard let status = try? SystemCalls.status(at: record) else { return true }
        return .seconds(time(nil) - status.st_mtim.tv_sec) > Self.unreachableLifetime
    }

    private func recordNames() throws(DocumentError) -> [String] {
        guard let stream = folder.withPlatformString({ opendir($0) }) else {
            throw DocumentError(.stateUnavailable, folder.displayed, underlyingError: Errno(rawValue: errno))
        }
        defer { closedir(stream) }
        var found: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                String(cString: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self))
            }
            if name.hasSuffix(PartFileRecord.suffix) { found.append(name) }
        }
        return found.sorted()
    }
}
