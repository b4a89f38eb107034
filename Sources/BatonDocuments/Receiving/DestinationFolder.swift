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

    /// See ``FileSystem/keepsInodes``.
    let keepsInodes: Bool

    /// A look at what came before that ends with an error; nil for what the disk says. For tests.
    private let lookFailure: LookFailure?

    /// See ``FileSystem/number``.
    let fileSystem: UInt64?

    /// The present run of the system. Where nothing tells it, it lasts as long as this folder is open, and with it its
    /// file system mounted: attempts of one handoff are of the same.
    let run: BootID

    let file: OwnedDescriptor
    private let landlock: Int?

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
    ///
    /// - Parameters:
    ///   - lacking: what the kernel is said not to have: for tests, whose kernel has it.
    ///   - landlock: the version that the kernel is said to have, likewise.
    ///   - keepsInodes: what is said of the file system, likewise.
    ///   - lookFailure: likewise.
    ///   - run: the present run of the system, likewise.
    init(
        _ path: FilePath, lacking: NeededCall? = nil, landlock: Int? = nil,
        keepsInodes: Bool? = nil, lookFailure: LookFailure? = nil, run: BootID? = nil
    ) throws(DocumentError) {
        self.path = path
        self.landlock = landlock
        do {
            file = try SystemCalls.open(path, O_RDONLY | O_DIRECTORY)
        } catch {
            let isMissing = error == .noSuchFileOrDirectory || error == .notDirectory
            throw DocumentError(
                isMissing ? .destinationMissing : .destinationNotWritable, path.displayed, underlyingError: error)
        }
        resolvedPath = Self.place(of: file) ?? path
        self.run = run ?? .current(of: file)
        isKnownToName = Self.isKnownToName(file)
        let system = FileSystem(of: file)
        self.keepsInodes = keepsInodes ?? system.keepsInodes
        fileSystem = system.number
        self.lookFailure = lookFailure
        // Refused before the other device hears of anything, and not when its first byte has come.
        for call in NeededCall.allCases {
            guard let error = call == lacking ? .noFunction : Self.refusal(of: call, in: file) else { continue }
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
        try Landlock.confineThread(receivingIn: file, recordingIn: records, readingIn: copies, version: landlock)
    }

    /// Whether the confined thread can move a file from one folder to another: not with the first version of Landlock.
    var movesBetweenFolders: Bool {
        guard case .version(let version) = Landlock.support else { return false }
        return min(version, landlock ?? version) >= 2
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

    /// Makes a new, empty file that only this user can open.
    ///
    /// The name is one component; the kernel is told to stay beneath the folder and to follow no link all the same.
    ///
    /// - Returns: nil when the name is taken.
    func makeFile(_ name: [UInt8], for label: DocumentLabel) throws(DocumentError) -> OwnedDescriptor? {
        let terminated = name.map { CChar(bitPattern: $0) } + [0]
        let folder = file.rawValue
        let flags = UInt64(O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC)
        do {
            return OwnedDescriptor(
                takingOwnershipOf: try SystemCalls.kernel { baton_open_beneath(folder, terminated, flags, 0o600) })
        } catch .fileExists {
            return nil
        } catch {
            throw DocumentError(creatingFailed: error, label, in: path)
        }
    }

    /// Makes sure that nobody has said that a look is not answered.
    func requireAnswer(to look: LookFailure.Look) throws(Errno) {
        if let lookFailure, lookFailure.look == look { throw lookFailure.error }
    }

    /// Opens a file of this folder again that an earlier transfer has begun: a regular file of this inode, of this
    /// user.
    ///
    /// - Returns: nil when there is none.
    func reopenFile(_ name: [UInt8], inode: UInt64, for label: DocumentLabel) throws(DocumentError) -> OwnedDescriptor?
    {
        let flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK
        do throws(Errno) {
            try requireAnswer(to: .part)
            let found: OwnedDescriptor
            do throws(Errno) {
                found = try SystemCalls.open(name, beneath: file, flags)
            } catch .permissionDenied {
                try SystemCalls.restoreAccess(name, in: file, inode: inode)
                found = try SystemCalls.open(name, beneath: file, flags)
            }
            let status = try SystemCalls.status(of: found)
            // A file that has a second name somewhere would be written to there as well.
            guard
                status.st_mode & S_IFMT == S_IFREG, status.st_ino == inode, status.st_uid == geteuid(),
                status.st_nlink == 1
            else { return nil }
            return found
        } catch .noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels, .isDirectory, .improperLink {
            return nil
        } catch {
            throw DocumentError(creatingFailed: error, label, in: path)
        }
    }

    /// Gives a file of this folder its final name, never in the place of another.
    ///
    /// - Parameter withLink: takes the road of file systems that cannot rename without replacing at once.
    /// - Throws: `destinationExists`, `destinationUnsuitable` where the file system can promise neither, and the errors
    ///   of making a file. Nothing has changed then.
    func rename(_ name: [UInt8], to label: DocumentLabel, withLink: Bool = false) throws(DocumentError) {
        do throws(Errno) {
            try label.withCString { (to) throws(Errno) in try rename(name, to, withLink) }
        } catch .fileExists {
            throw DocumentError(.destinationExists, path(of: label).displayed, underlyingError: .fileExists)
        } catch {
            throw DocumentError(namingFailed: error, label, in: path)
        }
    }

    /// Gives a part its final name, never in the place of something else.
    ///
    /// - Returns: the name that it has got.
    /// - Throws: as ``rename(_:to:withLink:)``. `destinationExists` also if all names with a number are taken.
    func rename(
        _ name: [UInt8], to label: DocumentLabel, _ naming: DocumentNaming, isFolder: Bool, withLink: Bool = false
    ) throws(DocumentError) -> DocumentLabel {
        let wanted = naming.label ?? label
        var (candidate, number) = (wanted, 1)
        while true {
            do throws(DocumentError) {
                try rename(name, to: candidate, withLink: withLink)
                return candidate
            } catch {
                guard naming.renames, error.code == .destinationExists, number < DocumentNaming.highestNumber else {
                    throw error
                }
                number += 1
                candidate = wanted.numbered(number, isFolder: isFolder)
            }
        }
    }

    /// Gives a part file of this folder another part file's name, likewise.
    func rename(_ name: [UInt8], toPartFile other: [UInt8], for label: DocumentLabel) throws(DocumentError) {
        do {
            try rename(name, other.map { CChar(bitPattern: $0) } + [0], false)
        } catch {
            throw DocumentError(namingFailed: error, label, in: path)
        }
    }

    /// - Throws: `notSupported` where the file system can neither rename without replacing nor give a second name.
    private func rename(_ name: [UInt8], _ to: UnsafePointer<CChar>, _ withLink: Bool) throws(Errno) {
        let from = name.map { CChar(bitPattern: $0) } + [0]
        let folder = file.rawValue
        if !withLink {
            do {
                try SystemCalls.kernel { baton_rename_without_replacing(folder, from, to) }
                return
            } catch {
                // Some file systems (NFS among them) cannot promise it. A second name cannot replace anything either.
                guard error == .invalidArgument || error == .noFunction || error == .notSupported else { throw error }
            }
        }
        do {
            try SystemCalls.call { linkat(folder, from, folder, to, 0) }
        } catch {
            throw error == .notPermitted || error == .noFunction ? .notSupported : error
        }
        // It stands under its own name now; a part name that stays is an extra, not a failure.
        try? SystemCalls.remove(from, from: file)
    }

    /// Whether a name in the folder is a regular file and has this inode: not something that was put in its place.
    func holds(_ name: [UInt8], inode: UInt64) -> Bool {
        let terminated = name.map { CChar(bitPattern: $0) } + [0]
        guard let status = try? SystemCalls.status(of: terminated, in: file) else { return false }
        return status.st_mode & S_IFMT == S_IFREG && status.st_ino == inode
    }

    /// The inode of a name in the folder, whatever it is; nil where nothing has the name.
    ///
    /// - Throws: `writeFailed`, `busy`, ...: the disk does not answer, and nobody knows.
    func inode(of name: [UInt8], for label: DocumentLabel) throws(DocumentError) -> UInt64? {
        do throws(Errno) {
            try requireAnswer(to: .name)
            return UInt64(try SystemCalls.status(ofName: name, in: file).st_ino)
        } catch .noSuchFileOrDirectory, .notDirectory {
            return nil
        } catch {
            throw DocumentError(creatingFailed: error, label, in: path)
        }
    }

    /// Whether a name in the folder is certainly gone, or something else's: a disk that does not answer has lost
    /// nothing.
    func hasLost(_ name: [UInt8], inode: UInt64) -> Bool {
        let terminated = name.map { CChar(bitPattern: $0) } + [0]
        do {
            return try SystemCalls.status(of: terminated, in: file).st_ino != inode
        } catch {
            return error == .noSuchFileOrDirectory
        }
    }

    /// Removes a name, if it is there.
    func remove(_ name: [UInt8]) {
        let terminated = name.map { CChar(bitPattern: $0) } + [0]
        try? SystemCalls.remove(terminated, from: file)
    }

    /// Makes the folder's entries durable.
    func synchronize() throws(Errno) {
        try SystemCalls.synchronize(file)
    }
}

extension DocumentError {
    /// What it means that a file could not be made or named in a destination folder.
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

    /// What it means that a file could not be given a name without replacing another.
    fileprivate init(namingFailed error: Errno, _ label: DocumentLabel, in folder: FilePath) {
        if error == .notSupported {
            self.init(.destinationUnsuitable, folder.displayed, underlyingError: error)
        } else {
            self.init(creatingFailed: error, label, in: folder)
        }
    }

    /// What it means that something in the state folder could not be opened or written.
    init(stateFailed error: Errno, _ subject: String) {
        self.init(error.isShortage ? .busy : .stateUnavailable, subject, underlyingError: error)
    }

    /// What it means that a document's bytes could not be written or made durable.
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
