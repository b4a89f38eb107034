// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop
import Glibc
package import SystemPackage

/// Finds out what a document consists of.
package enum DocumentScan {
    /// How often a folder is walked that does not keep still, before that is an error.
    private static let attempts = 3

    /// Looks at a file or folder that a user wants to offer, and at everything in it, and makes sure that it can be
    /// read.
    ///
    /// Blocking: call it on a `BlockingExecutor`. `path` itself may be a link, because it is the user's own choice;
    /// links in a folder are not followed. File systems that are mounted in the folder belong to it. Nothing is opened
    /// but folders, and files that say they have no bytes.
    ///
    /// - Parameters:
    ///   - selection: the entries to look at, if `path` is a folder. Nothing but a folder is looked at for them.
    ///   - room: what the tree takes of a budget; nil, the default, takes nothing.
    /// - Throws: `missing`, also for a selected entry; `unreadable`, with the name of the entry; `sourceChanged` for a
    ///   folder that changed each time it was walked; `busy` if the budget has no room; `cancelled` when the task is.
    ///   Also `notRegularFile`, `noName`, `tooManyEntries`, `tooDeep` and `tooLarge`.
    package static func scan(
        _ path: FilePath, _ selection: DocumentSelection = .all, room: ByteReservation? = nil
    ) throws(DocumentError) -> ScannedDocument {
        let status: stat
        do {
            status = try SystemCalls.status(at: path)
        } catch {
            throw DocumentError(openingFailed: error, path)
        }
        guard status.st_mode & S_IFMT == S_IFDIR || !selection.isAll else { return try scanFile(path) }
        var named = path
        if path.lastComponent?.kind != .regular {
            // `baton offer .` offers this folder under its own name.
            guard let resolved = try? FileLookup.resolved(path) else { throw DocumentError(.noName, path.displayed) }
            named = resolved
        }
        let label = try DocumentLabel(of: named)
        var document = try scanFolder(path, label, selection, room)
        document.identity = DocumentIdentity(FileIdentity(status), at: named, called: label, selection)
        return document
    }

    private static func scanFolder(
        _ path: FilePath, _ label: DocumentLabel, _ selection: DocumentSelection, _ room: ByteReservation?
    ) throws(DocumentError) -> ScannedDocument {
        for _ in 1..<attempts {
            do throws(DocumentError) {
                let document = try walk(path, label, selection, room)
                guard document.tree.layout.chunkCount == 0 else { return document }
                // Of one without bytes nothing is ever read, so nobody looks at it later. Its folders are walked one
                // after the other, and an entry that moves from one to another may be found in neither.
                let version = try walk(path, label, selection, nil).tree.version
                guard version == document.tree.version else { throw DocumentError(.sourceChanged, path.displayed) }
                return document
            } catch {
                guard error.code == .sourceChanged else { throw error }
                // The next walk takes the room of this one.
                if let room { room.shrink(by: room.bytes) }
            }
        }
        return try walk(path, label, selection, room)
    }

    /// Looks at a file that a user wants to offer, and makes sure that it can be read; see ``openFile(_:)``.
    ///
    /// - Throws: `missing`, `unreadable`, `readFailed`, `busy`, `isFolder`, `notRegularFile`, `noName`.
    package static func scanFile(_ path: FilePath) throws(DocumentError) -> ScannedDocument {
        let file = try openFile(path)
        let status: stat
        do {
            status = try SystemCalls.status(of: file)
        } catch {
            throw DocumentError(openingFailed: error, path)
        }
        let (label, identity) = (try DocumentLabel(of: path), FileIdentity(status))
        let tree = try DocumentTree(
            file: DocumentEntry.File(status, identity), called: label, modified: identity.modified,
            permissions: status.permissionBits)
        var document = ScannedDocument(path: path, tree: tree, leftOut: .init())
        document.identity = DocumentIdentity(identity, at: path, called: label)
        return document
    }

    /// Opens a file that a user has named. Links are followed, because it is the user's own choice of path. A pipe or
    /// device is never opened to find out what it is.
    static func openFile(_ path: FilePath) throws(DocumentError) -> OwnedDescriptor {
        do {
            // Opening can have effects (a tape rewinds, a pipe waits), so the kind comes first. In the race that is
            // left, O_NONBLOCK keeps a pipe from blocking and O_NOCTTY a terminal from taking over.
            try requireRegular(SystemCalls.status(at: path), path)
            let file = try SystemCalls.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY)
            let status = try SystemCalls.status(of: file)
            try requireRegular(status, path)
            // Files of the kernel (/proc) say 0 bytes and have more: they have no size that could be promised to a
            // peer.
            guard try status.st_size > 0 || SystemCalls.isEmpty(file) else {
                throw DocumentError(.notRegularFile, path.displayed)
            }
            return file
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

    private static func walk(
        _ path: FilePath, _ label: DocumentLabel, _ selection: DocumentSelection, _ room: ByteReservation?
    ) throws(DocumentError) -> ScannedDocument {
        let root: OwnedDescriptor
        do {
            root = try SystemCalls.open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK)
        } catch {
            throw DocumentError(openingFailed: error, path)
        }
        var walk = FolderWalk(path, label, selection, room)
        try walk.walk(root, at: .root)
        return try walk.finish()
    }
}

extension stat {
    /// Read, write and execute bits of owner, group and others: set-id and sticky bits are never offered.
    var permissionBits: UInt16 { UInt16(st_mode & 0o777) }
}

extension DocumentEntry.File {
    /// Bytes that a file has to lack on the disk to be taken for one with holes: a block. A file that is kept in its
    /// inode is smaller. A compressed file is taken for one with holes, which only costs looking for zeros.
    private static let sparseMargin: Int64 = 4 << 10

    init(_ status: stat, _ identity: FileIdentity) {
        self.init(
            size: identity.size, isExecutable: status.st_mode & S_IXUSR != 0,
            isSparse: Int64(status.st_blocks) * 512 + Self.sparseMargin <= Int64(status.st_size),
            version: FileVersion(of: identity))
    }
}
