// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
package import SystemPackage

/// A file or folder of this machine that is offered, without its entries.
package struct DocumentSource: Sendable, Hashable {
    /// Its path. Callers that offer it for later make a relative path absolute.
    package let path: FilePath
    /// The entries of the folder that are offered.
    package let selection: DocumentSelection
    /// The name it is offered under: the last component of `path`, also of a symbolic link.
    package let label: DocumentLabel
    /// Bytes: of a folder those of all files in it.
    package let size: UInt64
    package let isFolder: Bool
    /// Which document it is, whatever is in it.
    package let document: DocumentIdentity

    package init(_ scanned: ScannedDocument) {
        path = scanned.path
        selection = scanned.selection
        label = scanned.tree.label
        size = scanned.tree.size
        isFolder = scanned.tree.isFolder
        document = scanned.identity
    }
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
