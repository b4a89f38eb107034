// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage

/// One walk through a folder, in the order of a manifest.
///
/// It holds one descriptor for each level, 65 at most, the names of the folders on the way, and the entries. The limits
/// of ``DocumentTree`` bound these, and they take room of a budget. The walk ends at the next entry when its task is
/// cancelled.
struct FolderWalk {
    /// Bytes that a list of names takes for each, beside the name.
    private static let nameOverhead = 48

    private struct Place: Equatable {
        let device: dev_t
        let inode: ino_t
    }

    private let path: FilePath
    private let label: DocumentLabel
    private let selection: DocumentSelection
    private let room: ByteReservation?
    private var builder: DocumentTree.Builder
    private var leftOut = ScannedDocument.LeftOut()
    /// Names that were read, with those that are still to be looked at.
    private var nameCount = 1
    /// The folders that are being walked: what is among them again is a loop, which mounts can make.
    private var open: [Place] = []

    init(
        _ path: FilePath, _ label: DocumentLabel, _ selection: DocumentSelection = .all, _ room: ByteReservation? = nil
    ) {
        self.path = path
        self.label = label
        self.selection = selection
        self.room = room
        builder = DocumentTree.Builder(label, room: room)
    }

    /// The document, once the root was walked.
    func finish() throws(DocumentError) -> ScannedDocument {
        ScannedDocument(path: path, selection: selection, tree: try builder.finish(), leftOut: leftOut)
    }

    /// Takes a folder and all that is in it.
    mutating func walk(_ folder: borrowing OwnedDescriptor, at entry: EntryPath) throws(DocumentError) {
        let before = try status(of: folder, at: entry)
        let place = Place(device: before.st_dev, inode: before.st_ino)
        guard !open.contains(place) else { return leftOut.add(entry) }
        open.append(place)
        try builder.append(
            DocumentEntry(
                path: entry, kind: .folder, modified: FileIdentity(before).modified,
                permissions: before.permissionBits))
        let names = try names(in: folder, at: entry)
        let listSize = names.reduce(0) { $0 + $1.count + Self.nameOverhead }
        guard room?.grow(by: listSize) ?? true else { throw DocumentError(.busy, path.displayed) }
        for name in names {
            guard !Task.isCancelled else { throw DocumentError(.cancelled, path.displayed) }
            try take(name, in: folder, at: entry)
        }
        room?.shrink(by: listSize)
        open.removeLast()
        let (then, now) = (FileIdentity(before), FileIdentity(try status(of: folder, at: entry)))
        let hasOthers = entry.isRoot && !selection.isAll
        guard hasOthers || (then.modified == now.modified && then.changed == now.changed) else {
            throw DocumentError(.sourceChanged, displayed(entry))
        }
    }

    private mutating func take(
        _ name: [UInt8], in folder: borrowing OwnedDescriptor, at parent: EntryPath
    ) throws(DocumentError) {
        let entry: EntryPath
        do {
            entry = try parent.appending(try DocumentLabel(name))
        } catch {
            throw DocumentError(.tooDeep, "\(path.displayed)/\(error.subject)")
        }
        do {
            let status = try SystemCalls.status(ofName: name, in: folder)
            let identity = FileIdentity(status)
            let modified = identity.modified
            switch status.st_mode & S_IFMT {
            case S_IFDIR:
                let child = try SystemCalls.open(name, beneath: folder, O_RDONLY | O_DIRECTORY | O_NONBLOCK)
                try walk(child, at: entry)
            case S_IFREG:
                guard try isReadable(name, in: folder, isEmpty: status.st_size == 0) else { return leftOut.add(entry) }
                let file = DocumentEntry.File(status, identity)
                try builder.append(
                    DocumentEntry(
                        path: entry, kind: .file(file), modified: modified, permissions: status.permissionBits))
            case S_IFLNK:
                let bytes = try SystemCalls.target(ofLink: name, in: folder, limit: LinkTarget.maximumLength + 1)
                guard let target = LinkTarget(bytes, at: entry), isOffered(target.top(from: entry)) else {
                    return leftOut.add(entry)
                }
                try builder.append(DocumentEntry(path: entry, kind: .link(target), modified: modified))
            default:
                leftOut.add(entry)
            }
        } catch let error as Errno {
            throw failure(error, entry)
        } catch let error as DocumentError {
            throw error
        } catch {
            throw DocumentError(.readFailed, displayed(entry))
        }
    }

    /// Whether the entry of this name in the root is offered; nil is the root itself.
    private func isOffered(_ top: [UInt8]?) -> Bool { selection.isAll || top.map(selection.names.contains) ?? true }

    /// Makes sure that this user may read a file.
    ///
    /// - Returns: whether it is one that has the size it says: files of the kernel say 0 bytes and have more.
    private func isReadable(
        _ name: [UInt8], in folder: borrowing OwnedDescriptor, isEmpty: Bool
    ) throws(Errno) -> Bool {
        let number = folder.rawValue
        guard isEmpty else {
            try SystemCalls.withName(name) { (name) throws(Errno) in
                try SystemCalls.call { faccessat(number, name, R_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) }
            }
            return true
        }
        let file = try SystemCalls.open(name, beneath: folder, O_RDONLY | O_NONBLOCK | O_NOCTTY)
        do throws(Errno) {
            return try SystemCalls.isEmpty(file)
        } catch .wouldBlock, .illegalSeek {
            return false
        }
    }

    private mutating func names(
        in folder: borrowing OwnedDescriptor, at entry: EntryPath
    ) throws(DocumentError) -> [[UInt8]] {
        if entry.isRoot, !selection.isAll {
            nameCount += selection.names.count
            return selection.names
        }
        let room = DocumentTree.entryLimit - nameCount
        var names: [[UInt8]]
        do {
            names = try SystemCalls.names(in: folder, atLeast: room + 1)
        } catch {
            throw failure(error, entry)
        }
        guard names.count <= room else { throw DocumentError(.tooManyEntries, path.displayed) }
        nameCount += names.count
        names.sort { one, other in
            let order = memcmp(one, other, min(one.count, other.count))
            return order == 0 ? one.count < other.count : order < 0
        }
        return names
    }

    private func status(of folder: borrowing OwnedDescriptor, at entry: EntryPath) throws(DocumentError) -> stat {
        do {
            return try SystemCalls.status(of: folder)
        } catch {
            throw failure(error, entry)
        }
    }

    private func failure(_ error: Errno, _ entry: EntryPath) -> DocumentError {
        if error == .noSuchFileOrDirectory, selection.names.contains(entry.bytes) {
            return DocumentError(.missing, displayed(entry), underlyingError: error)
        }
        return DocumentError(lookingFailed: error, displayed(entry))
    }

    private func displayed(_ entry: EntryPath) -> String {
        entry.isRoot ? path.displayed : "\(path.displayed)/\(entry)"
    }
}
