// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage

/// The last steps of a part: everything that is no content.
///
/// Files and folders first, then the links, so that none is there while files are opened. Times and permissions of
/// folders last, from the deepest on: every entry that is made changes the time, and needs the permission to make it.
struct PartFinishing {
    private let part: Part
    private let tree: DocumentTree
    /// Of every entry: two that are one are found by it. File systems that do not tell `A` from `a` make such.
    private var inodes: [ino_t] = []

    init(_ part: Part) {
        self.part = part
        tree = part.tree
        inodes.reserveCapacity(tree.entryCount)
    }

    /// Takes all steps; they can be taken again.
    ///
    /// - Parameter isCancelled: is asked before each entry.
    mutating func finish(unless isCancelled: () -> Bool) throws(DocumentError) {
        func requireWanted() throws(DocumentError) {
            if isCancelled() { throw DocumentError(.cancelled, tree.label.description) }
        }
        var links: [Int] = []
        for index in (tree.isFolder ? 1 : 0)..<tree.entryCount {
            try requireWanted()
            let entry = tree[index]
            switch entry.kind {
            case .file(let file): try at(entry) { (step) throws(Errno) in try step.finish(file, entry) }
            case .folder: try at(entry) { (step) throws(Errno) in try step.make(entry) }
            case .link: links.append(index)
            }
        }
        for index in links {
            try requireWanted()
            let entry = tree[index]
            guard case .link(let target) = entry.kind else { continue }
            try at(entry) { (step) throws(Errno) in try step.link(entry, to: target) }
        }
        try requireDistinct()
        for index in (0..<tree.entryCount).reversed() {
            try requireWanted()
            let entry = tree[index]
            guard case .folder = entry.kind else { continue }
            try at(entry) { (step) throws(Errno) in try step.finishFolder(entry) }
        }
    }

    private mutating func at(
        _ entry: DocumentEntry, _ body: (inout PartFinishing) throws(Errno) -> Void
    ) throws(DocumentError) {
        do {
            try body(&self)
        } catch .noMessage {
            throw DocumentError(.incomplete, part.displayed(entry.path))
        } catch .fileExists {
            throw DocumentError(.destinationUnsuitable, part.place.folder.path.displayed, underlyingError: .fileExists)
        } catch {
            throw part.failure(error, entry.path)
        }
    }

    private mutating func finish(_ file: DocumentEntry.File, _ entry: DocumentEntry) throws(Errno) {
        guard !entry.path.isRoot else { return try finish(part.root.descriptor, file, entry) }
        let parent = try part.folder(at: entry.path.parent)
        // The kernel takes permissions only where it may make something.
        let (creating, mode): (Int32, mode_t) = file.size == 0 ? (O_CREAT, 0o600) : (0, 0)
        let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | creating
        let opened: OwnedDescriptor
        do {
            opened = try SystemCalls.open(entry.path.name, beneath: parent.descriptor, flags, mode: mode)
        } catch {
            throw error == .noSuchFileOrDirectory ? .noMessage : error
        }
        try finish(opened, file, entry)
    }

    private mutating func finish(
        _ opened: borrowing OwnedDescriptor, _ file: DocumentEntry.File, _ entry: DocumentEntry
    ) throws(Errno) {
        let status = try SystemCalls.status(of: opened)
        try SystemCalls.requireOwn(status)
        guard status.st_size == off_t(file.size) else { throw .noMessage }
        inodes.append(status.st_ino)
        let permissions = entry.mode(allowedBy: part.place.umask)
        if status.st_mode & 0o7777 != permissions { try SystemCalls.setMode(permissions, of: opened) }
        if let modified = entry.modified { try SystemCalls.setTime(modified, of: opened) }
    }

    private mutating func make(_ entry: DocumentEntry) throws(Errno) {
        let folder = try part.folder(at: entry.path)
        inodes.append(try SystemCalls.status(of: folder.descriptor).st_ino)
    }

    private mutating func link(_ entry: DocumentEntry, to target: LinkTarget) throws(Errno) {
        let parent = try part.folder(at: entry.path.parent)
        let number = parent.descriptor.rawValue
        do {
            try SystemCalls.withName(target.bytes) { (target) throws(Errno) in
                try SystemCalls.withName(entry.path.name) { (name) throws(Errno) in
                    try SystemCalls.call { symlinkat(target, number, name) }
                }
            }
        } catch .fileExists {
            // An earlier attempt to finish may have made it; anything else is an entry that has become one with it.
            let limit = LinkTarget.maximumLength + 1
            let found = try? SystemCalls.target(ofLink: entry.path.name, in: parent.descriptor, limit: limit)
            guard found == target.bytes else { throw .fileExists }
        }
        inodes.append(try SystemCalls.status(ofName: entry.path.name, in: parent.descriptor).st_ino)
        if let modified = entry.modified {
            try SystemCalls.setTime(modified, ofName: entry.path.name, in: parent.descriptor)
        }
    }

    private mutating func finishFolder(_ entry: DocumentEntry) throws(Errno) {
        let folder = try part.folder(at: entry.path)
        try SystemCalls.setMode(entry.mode(allowedBy: part.place.umask), of: folder.descriptor)
        if let modified = entry.modified { try SystemCalls.setTime(modified, of: folder.descriptor) }
    }

    private mutating func requireDistinct() throws(DocumentError) {
        inodes.sort()
        for (one, other) in zip(inodes, inodes.dropFirst()) where one == other {
            throw DocumentError(.destinationUnsuitable, part.place.folder.path.displayed, underlyingError: .fileExists)
        }
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
