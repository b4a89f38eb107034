// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage

/// Extraneous entries of a part folder: an earlier transfer left them, and the document does not have them any more.
extension PartFolder {
    /// Removes extraneous entries, those of another kind than in the document, and all links, which are made last.
    /// Gives the owner access to the others, if the earlier transfer has set their final permissions.
    ///
    /// In the folder of this very version a file goes as well that has a second name, which a snapshot or a
    /// deduplicator may have given it: it cannot be written to, and what the other name leads to stays. That of another
    /// version is put aside later (``putAside(file:)``).
    ///
    /// - Parameter kept: paths of files that are put aside instead; nil in the folder of this version.
    func removeExtraneous(keeping kept: Set<[UInt8]>?) throws(DocumentError) {
        var next = 1
        try removeExtraneous(in: root, at: .root, &next, keeping: kept)
    }

    /// - Parameter next: the entry that comes next in the manifest: of this folder or after it.
    private func removeExtraneous(
        in folder: borrowing OwnedDescriptor, at path: EntryPath, _ next: inout Int, keeping kept: Set<[UInt8]>?
    ) throws(DocumentError) {
        let names: [[UInt8]]
        do {
            names = try SystemCalls.names(in: folder, atLeast: FolderRemoval.nameLimit)
        } catch {
            throw failure(error, path)
        }
        var found = Set(names)
        if path.isRoot { found.remove(asideName) }
        while next < tree.entryCount {
            let entry = tree[next]
            guard entry.path.parent == path else { break }
            next += 1
            let name = Array(entry.path.name)
            do throws(Errno) {
                guard found.contains(name), try isKind(of: entry, name, in: folder, isOwn: kept == nil) else {
                    skipContents(of: entry.path, &next)
                    continue
                }
            } catch {
                throw failure(error, entry.path)
            }
            found.remove(name)
            guard case .folder = entry.kind else { continue }
            let child: OwnedDescriptor
            do {
                child = try SystemCalls.openOwnFolder(name, within: folder)
            } catch {
                throw failure(error, entry.path)
            }
            try removeExtraneous(in: child, at: entry.path, &next, keeping: kept)
        }
        for name in found {
            do {
                if let kept, !kept.isEmpty { try putAside(name, of: folder, at: path, ifAmong: kept) }
                try remove(name, from: folder)
            } catch {
                throw failure(error, path)
            }
        }
    }

    /// Puts aside a file that is to be kept, and all those in a folder.
    private func putAside(
        _ name: [UInt8], of folder: borrowing OwnedDescriptor, at parent: EntryPath, ifAmong kept: Set<[UInt8]>
    ) throws(Errno) {
        // What is deeper than any document was not made by a transfer.
        guard let label = try? DocumentLabel(name), let path = try? parent.appending(label) else { return }
        let status = try SystemCalls.status(ofName: name, in: folder)
        switch status.st_mode & S_IFMT {
        case S_IFREG:
            guard kept.contains(path.bytes), status.st_size > 0, (try? SystemCalls.requireOwn(status)) != nil else {
                return
            }
            try putAside(name, of: folder, as: AsideName.ofMoved(path))
        case S_IFDIR:
            let child = try SystemCalls.openOwnFolder(name, within: folder)
            for name in try SystemCalls.names(in: child, atLeast: FolderRemoval.nameLimit) {
                try putAside(name, of: child, at: path, ifAmong: kept)
            }
        default: return
        }
    }

    /// Whether a name is of the kind of an entry. A file is made writable for its owner.
    ///
    /// - Parameter isOwn: whether a file is only meant that is written to.
    private func isKind(
        of entry: DocumentEntry, _ name: [UInt8], in folder: borrowing OwnedDescriptor, isOwn: Bool
    ) throws(Errno) -> Bool {
        let status = try SystemCalls.status(ofName: name, in: folder)
        let kind = status.st_mode & S_IFMT
        switch entry.kind {
        case .file:
            let isOurs = (try? SystemCalls.requireOwn(status)) != nil
            if isOurs, status.st_mode & 0o600 != 0o600 { try SystemCalls.restoreAccess(name, in: folder) }
            return isOwn ? isOurs : kind == S_IFREG
        case .folder: return kind == S_IFDIR
        case .link: return false
        }
    }

    /// What is in a folder that is not there is not there either.
    private func skipContents(of path: EntryPath, _ next: inout Int) {
        while next < tree.entryCount, tree[next].path.bytes.starts(with: path.bytes + [UInt8(ascii: "/")]) {
            next += 1
        }
    }

    private func remove(_ name: [UInt8], from folder: borrowing OwnedDescriptor) throws(Errno) {
        do {
            try SystemCalls.remove(name, from: folder, isFolder: false)
        } catch .noSuchFileOrDirectory {
            // It was put aside.
            return
        } catch .isDirectory {
            let child = try SystemCalls.openOwnFolder(name, within: folder)
            try FolderRemoval.removeContents(of: child)
            try SystemCalls.remove(name, from: folder, isFolder: true)
        }
    }
}
