// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
package import SystemPackage

/// The folder that a document is received into, held open: names are looked up in this folder and in no other, whatever
/// happens to its path meanwhile.
///
/// It is opened when the user says yes, before the other device hears of it. A link that somebody puts in its place
/// later diverts nothing.
package final class DestinationFolder: Sendable {
    /// The path the user gave.
    package let path: FilePath
    /// Where the folder is, absolute and without links, as far as the kernel can tell.
    package let resolvedPath: FilePath

    /// The file system that it is on.
    let fileSystem: FileSystem

    let file: OwnedDescriptor

    /// Opens the folder; blocks on the disk. Links in the path are followed: it is the user's own.
    ///
    /// - Throws: `destinationMissing`, `destinationNotWritable`, `systemUnsuitable`.
    package init(_ path: FilePath) throws(DocumentError) {
        self.path = path
        do {
            file = try SystemCalls.open(path, O_RDONLY | O_DIRECTORY)
            try SystemCalls.requireWritable(file)
        } catch {
            let isMissing = error == .noSuchFileOrDirectory || error == .notDirectory
            throw DocumentError(
                isMissing ? .destinationMissing : .destinationNotWritable, path.displayed, underlyingError: error)
        }
        resolvedPath = Self.place(of: file) ?? path
        fileSystem = FileSystem(of: file)
        // Refused before the other device hears of anything, and not when its first byte has come.
        do throws(Errno) {
            _ = try SystemCalls.open(".".utf8, beneath: file, O_RDONLY | O_DIRECTORY)
            _ = try Landlock.version()
        } catch {
            throw DocumentError(
                .systemUnsuitable,
                "Linux 5.13 or later with openat2, which a container can forbid, and with Landlock, which the kernel's "
                    + "lsm= parameter can leave out",
                underlyingError: error)
        }
    }

    /// Where a name in the folder is, by the user's path; where that leads to another folder by now, by this one's own.
    func path(of label: DocumentLabel) -> FilePath {
        let (there, own) = (try? SystemCalls.status(at: path), try? SystemCalls.status(of: file))
        let isThere = there?.st_ino == own?.st_ino && there?.st_dev == own?.st_dev
        let folder = isThere ? path : Self.place(of: file) ?? path
        guard let component = label.component else { return folder }
        return folder.appending(component)
    }

    /// Where an open folder is now, without links; nil where nobody can tell.
    private static func place(of folder: borrowing OwnedDescriptor) -> FilePath? {
        let link = FilePath("/proc/self/fd/\(folder.rawValue)")
        let target = link.withPlatformString { link in
            [CChar](unsafeUninitializedCapacity: Int(PATH_MAX) + 1) { room, count in
                if let start = room.baseAddress { count = max(0, readlink(link, start, Int(PATH_MAX))) }
                room[count] = 0
                count += 1
            }
        }
        let place = FilePath(platformString: target)
        return place.isAbsolute ? place : nil
    }

    /// Makes sure that nothing has the name of a document yet: no file, no folder, no link, not even one that leads
    /// nowhere.
    func requireAbsent(_ label: DocumentLabel, _ naming: DocumentNaming = .own) throws(DocumentError) {
        let label = naming.label ?? label
        do {
            _ = try SystemCalls.status(ofName: label.bytes, in: file)
        } catch .noSuchFileOrDirectory {
            return
        } catch {
            throw DocumentError(creatingFailed: error, label, in: path)
        }
        guard naming.renames else { throw DocumentError(.destinationExists, path(of: label).displayed) }
    }
}

extension DocumentError {
    /// The meaning of an error of making or naming a file in a destination folder.
    init(creatingFailed error: Errno, _ label: DocumentLabel, in folder: FilePath) {
        switch error {
        case .permissionDenied, .notPermitted, .readOnlyFileSystem:
            self.init(.destinationNotWritable, folder.displayed, underlyingError: error)
        case .noSuchFileOrDirectory, .staleNFSFileHandle:
            self.init(.destinationMissing, folder.displayed, underlyingError: error)
        case .notSupported: self.init(.destinationUnsuitable, folder.displayed, underlyingError: error)
        case .fileNameTooLong, .invalidArgument, .illegalByteSequence:
            self.init(.badName, label.description, underlyingError: error)
        case _ where error.isShortage: self.init(.busy, label.description, underlyingError: error)
        case _: self.init(writingFailed: error, label)
        }
    }

    /// The meaning of an error of writing a document's bytes or making them durable.
    init(writingFailed error: Errno, _ label: DocumentLabel) {
        let code: Code =
            switch error {
            case .noSpace, .diskQuotaExceeded: .destinationFull
            case .fileTooLarge: .tooLarge
            case .readOnlyFileSystem: .destinationNotWritable
            case _: .writeFailed
            }
        self.init(code, label.description, underlyingError: error)
    }
}

extension Errno {
    /// Whether the system has not enough of something at this moment, which says nothing of the disk.
    var isShortage: Bool {
        self == .tooManyOpenFiles || self == .tooManyOpenFilesInSystem || self == .noMemory
    }
}
