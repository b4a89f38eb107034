// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop
import Glibc
package import SystemPackage

/// A file or folder of this machine that is fit to be offered, as it was when it was looked at.
package struct DocumentSource: Sendable, Hashable {
    /// Its path. Callers that offer it for later make a relative path absolute.
    package let path: FilePath
    /// The entries of the folder that are offered.
    package var selection = DocumentSelection.all
    /// The name it is offered under: the last component of `path`, also of a symbolic link.
    package let label: DocumentLabel
    /// The state of a file, which shows a change of it. Of a folder it only says which one it is.
    package let identity: FileIdentity
    /// Read, write and execute bits of owner, group and others (0 to 0o777); set-id and sticky bits are never offered.
    package let permissions: UInt16
    /// Which document it is, whatever is in it.
    package let document: DocumentIdentity
    /// Its contents if it is a folder.
    package let folder: Folder?

    /// Properties of a folder that was walked.
    package struct Folder: Sendable, Hashable {
        /// Bytes of all files.
        package let size: UInt64
        /// The entries that will not be sent.
        package let leftOut: ScannedDocument.LeftOut
    }

    /// Size in bytes: of a folder that of all files in it.
    package var size: UInt64 { folder?.size ?? identity.size }

    /// Looks at a file, or at a folder and everything in it, that a user wants to offer, and makes sure that it can be
    /// read. Blocking, as ``DocumentScan/scan(_:_:room:)``.
    ///
    /// - Parameters:
    ///   - selection: the entries to offer, if `path` is a folder.
    ///   - room: the budget for looking at a folder; nil, the default, for none.
    /// - Throws: as ``inspect(_:)`` and ``DocumentScan/scan(_:_:room:)``.
    package static func survey(
        _ path: FilePath, _ selection: DocumentSelection = .all, room: ByteReservation? = nil
    ) throws(DocumentError) -> DocumentSource {
        if selection.isAll {
            do {
                return try inspect(path)
            } catch {
                guard error.code == .isFolder else { throw error }
            }
        }
        let document = try DocumentScan.scan(path, selection, room: room)
        do {
            let status = try SystemCalls.status(at: path)
            return DocumentSource(
                path: path, selection: selection, label: document.tree.label, identity: FileIdentity(status),
                permissions: status.permissionBits, document: document.identity,
                folder: Folder(size: document.tree.size, leftOut: document.leftOut))
        } catch {
            throw DocumentError(openingFailed: error, path)
        }
    }

    /// Looks at a file that a user wants to offer, and makes sure that it can be read.
    ///
    /// Blocking: call it on a `BlockingExecutor`. Links are followed, because it is the user's own choice of path. A
    /// pipe or device is never opened to find out what it is.
    ///
    /// - Throws: `missing`, `unreadable`, `isFolder`, `notRegularFile`, `noName`.
    package static func inspect(_ path: FilePath) throws(DocumentError) -> DocumentSource {
        try open(path).source
    }

    /// As `inspect`, and hands over the open file.
    static func open(_ path: FilePath) throws(DocumentError) -> OpenedDocument {
        do {
            // Opening can have effects (a tape rewinds, a pipe waits), so the kind comes first. In the race that is
            // left, O_NONBLOCK keeps a pipe from blocking and O_NOCTTY a terminal from taking over.
            try requireRegular(SystemCalls.status(at: path), path)
            let file = try SystemCalls.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY)
            let status = try SystemCalls.status(of: file)
            try requireRegular(status, path)
            let identity = FileIdentity(status)
            // Files of the kernel (/proc) say 0 bytes and have more: they have no size that could be promised to a
            // peer.
            guard try identity.size > 0 || SystemCalls.isEmpty(file) else {
                throw DocumentError(.notRegularFile, path.displayed)
            }
            let label = try DocumentLabel(of: path)
            let source = DocumentSource(
                path: path, label: label, identity: identity, permissions: status.permissionBits,
                document: DocumentIdentity(identity, at: path, called: label), folder: nil)
            return OpenedDocument(source: source, file: file)
        } catch let error as DocumentError {
            throw error
        } catch let error as Errno {
            throw DocumentError(openingFailed: error, path)
        } catch {
            throw DocumentError(.readFailed, path.displayed)
        }
    }

    private static func requireRegular(_ status: stat, _ path: FilePath) throws(DocumentError) {
        let kind = status.st_mode & S_IFMT
        if kind == S_IFDIR { throw DocumentError(.isFolder, path.displayed) }
        if kind != S_IFREG { throw DocumentError(.notRegularFile, path.displayed) }
    }
}

/// A source together with its open file.
struct OpenedDocument: ~Copyable {
    let source: DocumentSource
    let file: OwnedDescriptor

    consuming func takeFile() -> OwnedDescriptor { file }
}

/// One state of a file: which file it is, its size, and when its content and its entry changed.
///
/// A settled state (``SystemCalls/settledStatus(of:sleep:)``) shows each later edit. Another state misses an edit in
/// place within one tick of the file system's clock. On FAT and exFAT programs can set all times, so that an edit after
/// which the old time is set again is not seen.
package struct FileIdentity: Sendable, Hashable {
    /// A time of the file system's clock.
    package struct Time: Sendable, Hashable {
        /// Seconds since 1970, negative before.
        package let seconds: Int64
        /// Nanoseconds within the second.
        package let nanoseconds: Int64

        /// A time.
        package init(seconds: Int64, nanoseconds: Int64) {
            self.seconds = seconds
            self.nanoseconds = nanoseconds
        }

        fileprivate init(_ time: timespec) {
            self.init(seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
        }
    }

    /// The file system.
    package let device: UInt64
    /// The file's number in it.
    package let inode: UInt64
    /// Bytes.
    package let size: UInt64
    /// When the content last changed, as the file says; programs can set it.
    package let modified: Time
    /// When content or entry last changed; programs cannot set it.
    package let changed: Time

    init(_ status: stat) {
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
        size = UInt64(clamping: status.st_size)
        modified = Time(status.st_mtim)
        changed = Time(status.st_ctim)
    }
}

extension SystemCalls {
    /// Whether a file has no bytes, whatever its status says.
    static func isEmpty(_ file: borrowing OwnedDescriptor) throws(Errno) -> Bool {
        try withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { byte throws(Errno) in
            try read(file, into: byte, at: 0) == 0
        }
    }
}

extension DocumentError {
    /// The meaning of an error of opening a document for reading.
    init(openingFailed error: Errno, _ path: FilePath) {
        let code: Code =
            switch error {
            case .noSuchFileOrDirectory, .notDirectory, .fileNameTooLong: .missing
            case .permissionDenied, .notPermitted, .tooManySymbolicLinkLevels, .wouldBlock: .unreadable
            case .isDirectory: .isFolder
            case .noSuchAddressOrDevice, .operationNotSupportedByDevice: .notRegularFile
            case _ where error.isShortage: .busy
            default: .readFailed
            }
        self.init(code, path.displayed, underlyingError: error)
    }
}
