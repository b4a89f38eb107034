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
    let resolvedPath: FilePath

    /// Whether its file system is one whose renaming is known never to replace, so that nobody has to try.
    let isKnownToName: Bool

    /// The file system that it is on.
    let fileSystem: FileSystem

    let file: OwnedDescriptor

    /// Opens the folder, on a thread that may block. Links in the path are followed: it is the user's own.
    ///
    /// - Throws: `destinationMissing`, `destinationNotWritable`, `systemUnsuitable`, `busy`.
    package static func open(_ path: FilePath) async throws(DocumentError) -> DestinationFolder {
        let executor = try BlockingExecutor.forDocument(nil, "baton-folder")
        return try await Opener(executor: executor).open(path)
    }

    private actor Opener {
        nonisolated let executor: BlockingExecutor
        nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

        init(executor: BlockingExecutor) { self.executor = executor }

        func open(_ path: FilePath) throws(DocumentError) -> DestinationFolder { try DestinationFolder(path) }
    }

    /// Opens the folder where the caller may block.
    init(_ path: FilePath) throws(DocumentError) {
        self.path = path
        do {
            file = try SystemCalls.open(path, O_RDONLY | O_DIRECTORY)
        } catch {
            let isMissing = error == .noSuchFileOrDirectory || error == .notDirectory
            throw DocumentError(
                isMissing ? .destinationMissing : .destinationNotWritable, path.displayed, underlyingError: error)
        }
        resolvedPath = Self.place(of: file) ?? path
        isKnownToName = Self.isKnownToName(file)
        fileSystem = FileSystem(of: file)
        // Refused before the other device hears of anything, and not when its first byte has come.
        for call in NeededCall.allCases {
            guard let error = Self.refusal(of: call, in: file) else { continue }
            throw DocumentError(.systemUnsuitable, call.remedy, underlyingError: error)
        }
    }

    /// Whether two were the same folder when they were opened, by whatever path.
    package func isSame(as other: DestinationFolder) -> Bool { resolvedPath == other.resolvedPath }

    /// The error of a call that receiving needs; nil if the kernel has it.
    private static func refusal(of call: NeededCall, in folder: borrowing OwnedDescriptor) -> Errno? {
        switch call {
        case .openBeneath:
            let number = folder.rawValue
            do {
                let flags = UInt64(O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                _ = OwnedDescriptor(
                    takingOwnershipOf: try SystemCalls.kernel { baton_open_beneath(number, ".", flags, 0) })
                return nil
            } catch {
                return error
            }
        case .landlock:
            switch Landlock.support {
            case .version: return nil
            case .unavailable(let error): return error
            }
        }
    }

    /// Confines the calling thread to this folder and the one of the records, and to reading folders with older copies.
    func confineThread(
        recordingIn records: borrowing OwnedDescriptor, readingIn copies: [BasisFolder] = []
    ) throws(Errno) {
        try Landlock.confineThread(receivingIn: file, recordingIn: records, readingIn: copies)
    }

    /// Whether the confined thread can move a file from one folder to another: not with the first version of Landlock.
    var movesBetweenFolders: Bool {
        guard case .version(let version) = Landlock.support else { return false }
        return version >= 2
    }

    /// ext2 to ext4, XFS, Btrfs, F2FS, tmpfs and overlays take RENAME_NOREPLACE since Linux 3.15 or their birth. The
    /// call itself may be missing all the same, where a container's filter forbids it: no file is called "", and only
    /// who has the call says that.
    private static func isKnownToName(_ file: borrowing OwnedDescriptor) -> Bool {
        let known: [UInt32] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994, 0x794C_7630]
        return known.contains(baton_file_system(file.rawValue))
            && baton_rename_without_replacing(file.rawValue, "", "") == -ENOENT
    }

    /// Where a name in the folder is, by the user's path; where that leads to another folder by now, by this one's own.
    func path(of label: DocumentLabel) -> FilePath {
        let folder = SystemCalls.leads(path, to: file) == true ? path : Self.place(of: file) ?? path
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
    ///
    /// - Throws: `destinationExists`, unless a name that is taken gets a number; `badName` (longer than this file
    ///   system allows), `destinationNotWritable`.
    func requireAbsent(_ label: DocumentLabel, _ naming: DocumentNaming = .own) throws(DocumentError) {
        let label = naming.label ?? label
        do {
            _ = try label.withCString { (name) throws(Errno) in try SystemCalls.status(of: name, in: file) }
        } catch .noSuchFileOrDirectory {
            return
        } catch {
            throw DocumentError(creatingFailed: error, label, in: path)
        }
        guard naming.renames else { throw DocumentError(.destinationExists, path(of: label).displayed) }
    }

    /// Makes the folder's entries durable.
    func synchronize() throws(Errno) {
        try SystemCalls.synchronize(file)
    }
}

extension DocumentError {
    /// The meaning of an error of making or naming a file in a destination folder.
    init(creatingFailed error: Errno?, _ label: DocumentLabel, in folder: FilePath) {
        switch error {
        case .permissionDenied?, .notPermitted?, .readOnlyFileSystem?:
            self.init(.destinationNotWritable, folder.displayed, underlyingError: error)
        case .noSuchFileOrDirectory?, .staleNFSFileHandle?:
            self.init(.destinationMissing, folder.displayed, underlyingError: error)
        case .fileNameTooLong?, .invalidArgument?, .illegalByteSequence?:
            self.init(.badName, label.description, underlyingError: error)
        case let error? where error.isShortage:
            self.init(.busy, label.description, underlyingError: error)
        default:
            self.init(writingFailed: error, label)
        }
    }

    /// The meaning of an error of naming a file without replacing another.
    init(namingFailed error: Errno, _ label: DocumentLabel, in folder: FilePath) {
        if error == .notSupported {
            self.init(.destinationUnsuitable, folder.displayed, underlyingError: error)
        } else {
            self.init(creatingFailed: error, label, in: folder)
        }
    }

    /// The meaning of an error of opening or writing something in the state folder.
    init(stateFailed error: Errno, _ subject: String) {
        self.init(error.isShortage ? .busy : .stateUnavailable, subject, underlyingError: error)
    }

    /// The meaning of an error of writing a document's bytes or making them durable.
    init(writingFailed error: Errno?, _ label: DocumentLabel) {
        self.init(writingFailed: error, label.description)
    }

    /// The same, of what `subject` names (already fit to be shown).
    init(writingFailed error: Errno?, _ subject: String) {
        let code: Code =
            switch error {
            case .noSpace?, .diskQuotaExceeded?: .destinationFull
            case .fileTooLarge?: .tooLarge
            case .readOnlyFileSystem?: .destinationNotWritable
            default: .writeFailed
            }
        self.init(code, subject, underlyingError: error)
    }
}

extension Errno {
    /// Whether the system has not enough of something at this moment, which says nothing of the disk.
    var isShortage: Bool {
        self == .tooManyOpenFiles || self == .tooManyOpenFilesInSystem || self == .noMemory
    }
}
