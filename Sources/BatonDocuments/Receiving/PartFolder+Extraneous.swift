// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage

/// Extraneous entries of a part folder: an earlier transfer left them, and the document does not have them any more.
extension PartFolder {
    /// Removes extraneous entries, those of another kind than in the document, and all links, which are made last.
    /// Gives the owner access to the others, if the earlier transfer has set their final permissions.
    ///
    /// A file goes as well that has a second name, which a snapshot or a deduplicator may have given it: it cannot be
    /// written to, and what the other name leads to stays.
    func removeExtraneous() throws(DocumentError) {
        var next = 1
        try removeExtraneous(in: root, at: .root, &next)
    }

    /// - Parameter next: the entry that comes next in the manifest: of this folder or after it.
    private func removeExtraneous(
        in folder: borrowing OwnedDescriptor, at path: EntryPath, _ next: inout Int
    ) throws(DocumentError) {
        let names: [[UInt8]]
        do {
            names = try SystemCalls.names(in: folder, atLeast: FolderRemoval.nameLimit)
        } catch {
            throw failure(error, path)
        }
        var found = Set(names)
        while next < tree.entryCount {
            let entry = tree[next]
            guard entry.path.parent == path else { break }
            next += 1
            let name = Array(entry.path.name)
            do throws(Errno) {
                guard found.contains(name), try isKind(of: entry, name, in: folder) else {
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
            try removeExtraneous(in: child, at: entry.path, &next)
        }
        for name in found {
            do {
                try remove(name, from: folder)
            } catch {
                throw failure(error, path)
            }
        }
    }

    /// Whether a name is of the kind of an entry, and a file nobody else's. It is made writable for its owner.
    private func isKind(
        of entry: DocumentEntry, _ name: [UInt8], in folder: borrowing OwnedDescriptor
    ) throws(Errno) -> Bool {
        let status = try SystemCalls.status(ofName: name, in: folder)
        let kind = status.st_mode & S_IFMT
        switch entry.kind {
        case .file:
            let isOurs = (try? SystemCalls.requireOwn(status)) != nil
            if isOurs, status.st_mode & 0o600 != 0o600 { try SystemCalls.restoreAccess(name, in: folder) }
            return isOurs
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
        } catch .isDirectory {
            let child = try SystemCalls.openOwnFolder(name, within: folder)
            try FolderRemoval.removeContents(of: child)
            try SystemCalls.remove(name, from: folder, isFolder: true)
        }
    }
}
