// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// The files of a scanned document, to be opened one by one.
///
/// The folder is held open: what is beneath it is sent, whatever happens to its path. A document that is one file is
/// opened by its path each time, so that a file that took its place shows. Every call blocks on the disk; safe to use
/// from any thread.
final class DocumentFiles: Sendable {
    let tree: DocumentTree
    private let path: FilePath
    /// The document, if it is a folder.
    private let folder: OpenEntry?

    /// Opens the folder of a document, if it is one.
    init(_ document: ScannedDocument) throws(DocumentError) {
        (tree, path) = (document.tree, document.path)
        do {
            folder = tree.isFolder ? OpenEntry(.root, try SystemCalls.open(path, O_RDONLY | O_DIRECTORY)) : nil
        } catch {
            guard error != .notDirectory, error != .noSuchFileOrDirectory else {
                throw DocumentError(.sourceChanged, tree.label.description, underlyingError: error)
            }
            throw DocumentError(openingFailed: error, path)
        }
    }

    /// Opens a file as it is now: no link is followed, and nothing but a regular file is kept open.
    func open(file index: Int) throws(DocumentError) -> OpenedFile {
        let entry = tree.entry(ofFile: index)
        let name = tree.displayed(entry.path)
        let flags = O_RDONLY | O_NONBLOCK | O_NOCTTY
        do throws(Errno) {
            let file: OwnedDescriptor =
                if let folder {
                    try SystemCalls.open(entry.path.bytes, beneath: folder.descriptor, flags)
                } else {
                    try SystemCalls.open(path, flags)
                }
            let status = try SystemCalls.settledStatus(of: file)
            guard status.st_mode & S_IFMT == S_IFREG else { throw .noSuchFileOrDirectory }
            return OpenedFile(index, file, FileIdentity(status), called: name, isSparse: entry.file?.isSparse ?? false)
        } catch {
            throw DocumentError(lookingFailed: error, name)
        }
    }
}

extension DocumentError {
    /// The meaning of an error of looking at an entry of a document. An entry that is gone, or is something else by
    /// now, was changed.
    init(lookingFailed error: Errno, _ name: String) {
        let code: Code =
            switch error {
            case .permissionDenied, .notPermitted: .unreadable
            case .noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels, .improperLink, .invalidArgument,
                .noSuchAddressOrDevice, .isDirectory, .staleNFSFileHandle, .operationNotSupportedByDevice:
                .sourceChanged
            case _ where error.isShortage: .busy
            default: .readFailed
            }
        self.init(code, name, underlyingError: error)
    }
}

/// A file of a document that is being read.
final class OpenedFile: Sendable {
    /// Its number in the layout.
    let index: Int
    /// Its state when it was opened. A later write makes it another one (``SystemCalls/settledStatus(of:sleep:)``).
    let identity: FileIdentity
    /// Bytes that it had when it was opened.
    var size: UInt64 { identity.size }

    let descriptor: OwnedDescriptor
    private let isSparse: Bool
    private let name: String

    fileprivate init(
        _ index: Int, _ file: consuming OwnedDescriptor, _ identity: FileIdentity, called name: String, isSparse: Bool
    ) {
        self.index = index
        self.identity = identity
        self.isSparse = isSparse
        self.name = name
        descriptor = file
        // Doubles the read-ahead; advice that is refused costs nothing.
        if identity.size > UInt64(ChunkLayout.chunkSize) {
            _ = posix_fadvise(descriptor.rawValue, 0, 0, POSIX_FADV_SEQUENTIAL)
        }
    }

    /// Makes sure that the file is the version that was offered.
    func require(_ version: FileVersion?) throws(DocumentError) {
        guard version == FileVersion(of: identity) else { throw DocumentError(.sourceChanged, name) }
    }

    /// Makes sure that the file has not changed since it was opened.
    func requireUnchanged() throws(DocumentError) {
        let now: FileIdentity
        do {
            now = FileIdentity(try SystemCalls.status(of: descriptor))
        } catch {
            throw DocumentError(.readFailed, name, underlyingError: error)
        }
        guard now == identity else { throw DocumentError(.sourceChanged, name) }
    }

    /// Whether bytes are nothing but a hole. False if the file system cannot tell.
    func isHole(_ range: Range<UInt64>) -> Bool {
        guard isSparse, let start = Int64(exactly: range.lowerBound) else { return false }
        let found = baton_next_data(descriptor.rawValue, start)
        return found < 0 ? -found == Int64(ENXIO) : UInt64(found) >= range.upperBound
    }

    /// Reads as many bytes as are asked for, and makes sure that they are of the version that was offered.
    func read(into bytes: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(DocumentError) {
        guard try readSome(into: bytes, at: offset) == bytes.count else { throw DocumentError(.sourceChanged, name) }
        try requireUnchanged()
    }

    /// Reads bytes, fewer at the end of the file.
    func readSome(into bytes: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(DocumentError) -> Int {
        do {
            return try SystemCalls.read(descriptor, into: bytes, at: offset)
        } catch {
            throw DocumentError(.readFailed, name, underlyingError: error)
        }
    }
}

extension DocumentTree {
    /// An entry for people: the document's name and the path below it, escaped.
    func displayed(_ entry: EntryPath) -> String {
        entry.isRoot ? label.description : "\(label)/\(entry)"
    }
}

extension SystemCalls {
    /// The status of an open file that every later write changes.
    ///
    /// A write sets the time of the file when it begins, and a store to a mapped page only if the page is on disk. So
    /// mapped pages are write-protected, and writes under way are waited for, if something has the file open for
    /// writing. An edit within the tick of the clock in which the file was changed leaves the time as it is. So the
    /// end of the tick is waited for first, which takes 4 ms as a rule. The caller has to notice changes meanwhile.
    ///
    /// Some edits are not seen: a store to a mapped file on tmpfs or an overlay, a direct write that was under way, and
    /// an edit within a tick of a coarse clock (FAT: 2 s).
    ///
    /// - Parameter sleep: waits so many microseconds; a test can do something meanwhile.
    static func settledStatus(
        of file: borrowing OwnedDescriptor, sleep: (useconds_t) -> Void = { usleep($0) }
    ) throws(Errno) -> stat {
        let changed = FileIdentity(try status(of: file)).changed
        // A sleep may end before a late tick. Bounded: a clock that was set back may be behind for as long.
        for _ in 0..<50 {
            guard let tick = FileClock.tick(of: changed) else { break }
            sleep(tick)
        }
        let number = file.rawValue
        if baton_may_have_writer(number) != 0 {
            // Most file systems let nobody write meanwhile. Where one does not answer there is nothing to wait for.
            _ = baton_next_data(number, 0)
            _ = baton_protect_mapped(number)
        }
        return try status(of: file)
    }
}

/// The clock of which the kernel takes the times of files: it goes on with a tick, a few milliseconds at a time.
private enum FileClock {
    /// How far a time may be ahead of the clock: 100 ms. From Linux 6.13 on no file gets an earlier time than the last
    /// that any file got, and some get times within the tick. An idle or virtual processor is late with its ticks. A
    /// time further ahead is of a clock that was set back since, and no edit has it.
    private static let mostAhead = 100_000_000

    /// How long a tick lasts, in microseconds, if the clock has not gone on since this time; nil if it has.
    static func tick(of time: FileIdentity.Time) -> useconds_t? {
        var (now, resolution) = (timespec(), timespec())
        guard
            clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0, clock_getres(CLOCK_REALTIME_COARSE, &resolution) == 0
        else { return nil }
        let seconds = time.seconds &- Int64(now.tv_sec)
        guard seconds == 0 || seconds == 1 else { return nil }
        let ahead = seconds * 1_000_000_000 + time.nanoseconds - Int64(now.tv_nsec)
        guard ahead >= 0, ahead <= mostAhead else { return nil }
        return useconds_t(resolution.tv_nsec / 1000 + 1)
    }
}
