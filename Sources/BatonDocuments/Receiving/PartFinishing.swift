// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage

/// The last steps of a part: everything that is no content.
extension Part {
    /// Gives it permissions, times and links. It can be done again.
    ///
    /// Files and folders first, then the links, so that none is there while files are opened. Times and permissions of
    /// folders last, from the deepest on: every entry that is made changes the time, and needs the permission to make
    /// it.
    ///
    /// - Parameter isCancelled: is asked before each entry: there can be 100,000.
    /// - Throws: `cancelled`, `incomplete` where a file is missing or too short, `destinationUnsuitable` where two
    ///   entries have become one, ... The part is still there then.
    func prepare(unless isCancelled: () -> Bool = { false }) throws(DocumentError) {
        if tree.isFolder { current = nil }
        parent = nil
        // Of every entry: two that are one are found by it. File systems that do not tell `A` from `a` make such.
        var inodes: [ino_t] = []
        inodes.reserveCapacity(tree.entryCount)
        var links: [Int] = []
        for index in (tree.isFolder ? 1 : 0)..<tree.entryCount {
            try finish(index, unless: isCancelled) { (entry) throws(Errno) in
                switch entry.kind {
                case .file(let file): inodes.append(try finish(file, entry))
                case .folder:
                    inodes.append(try SystemCalls.status(of: try folder(at: entry.path).descriptor).st_ino)
                case .link: links.append(index)
                }
            }
        }
        for index in links {
            try finish(index, unless: isCancelled) { (entry) throws(Errno) in inodes.append(try link(entry)) }
        }
        inodes.sort()
        for (one, other) in zip(inodes, inodes.dropFirst()) where one == other { throw becomeOne }
        for index in (0..<tree.entryCount).reversed() {
            try finish(index, unless: isCancelled) { (entry) throws(Errno) in
                guard case .folder = entry.kind else { return }
                let folder = try folder(at: entry.path)
                try SystemCalls.setMode(entry.mode(allowedBy: place.umask), of: folder.descriptor)
                if let modified = entry.modified { try SystemCalls.setTime(modified, of: folder.descriptor) }
            }
        }
    }

    private func finish(
        _ index: Int, unless isCancelled: () -> Bool, _ body: (DocumentEntry) throws(Errno) -> Void
    ) throws(DocumentError) {
        if isCancelled() { throw DocumentError(.cancelled, tree.label.description) }
        let entry = tree[index]
        do {
            try body(entry)
        } catch .noMessage {
            throw DocumentError(.incomplete, displayed(entry.path))
        } catch .fileExists {
            throw becomeOne
        } catch {
            throw failure(error, entry.path)
        }
    }

    /// To this file system two names are one.
    var becomeOne: DocumentError {
        DocumentError(.destinationUnsuitable, place.folder.path.displayed, underlyingError: .fileExists)
    }

    /// - Returns: its inode.
    /// - Throws: `noMessage` where it is missing or has another size.
    private func finish(_ file: DocumentEntry.File, _ entry: DocumentEntry) throws(Errno) -> ino_t {
        var opened = root
        if !entry.path.isRoot {
            let parent = try folder(at: entry.path.parent)
            // The kernel takes permissions only where it may make something.
            let (creating, mode): (Int32, mode_t) = file.size == 0 ? (O_CREAT, 0o600) : (0, 0)
            let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | creating
            do {
                opened = OpenEntry(
                    entry.path,
                    try SystemCalls.open(entry.path.name, beneath: parent.descriptor, flags, mode: mode))
            } catch {
                throw error == .noSuchFileOrDirectory ? .noMessage : error
            }
        }
        let status = try SystemCalls.status(of: opened.descriptor)
        try SystemCalls.requireOwn(status)
        guard status.st_size == off_t(file.size) else { throw .noMessage }
        let permissions = entry.mode(allowedBy: place.umask)
        if status.st_mode & 0o7777 != permissions { try SystemCalls.setMode(permissions, of: opened.descriptor) }
        if let modified = entry.modified { try SystemCalls.setTime(modified, of: opened.descriptor) }
        return status.st_ino
    }

    /// Makes a link, unless an earlier attempt to finish has made it.
    ///
    /// - Returns: its inode.
    private func link(_ entry: DocumentEntry) throws(Errno) -> ino_t {
        guard case .link(let target) = entry.kind else { throw .invalidArgument }
        let (name, parent) = (entry.path.name, try folder(at: entry.path.parent))
        do {
            try SystemCalls.makeLink(name, to: target.bytes, in: parent.descriptor)
        } catch .fileExists {
            // Anything else is an entry that has become one with it.
            let limit = LinkTarget.maximumLength + 1
            let found = try? SystemCalls.target(ofLink: name, in: parent.descriptor, limit: limit)
            guard found == target.bytes else { throw .fileExists }
        }
        if let modified = entry.modified {
            try SystemCalls.setTime(modified, ofName: name, in: parent.descriptor)
        }
        return try SystemCalls.status(ofName: name, in: parent.descriptor).st_ino
    }
}

extension SystemCalls {
    /// Sets permissions. File systems that have none to set, FAT and its kin, are taken as done.
    static func setMode(_ mode: mode_t, of file: borrowing OwnedDescriptor) throws(Errno) {
        let number = file.rawValue
        do {
            try call { fchmod(number, mode) }
        } catch .notPermitted, .notSupported {
            return
        }
    }
}
