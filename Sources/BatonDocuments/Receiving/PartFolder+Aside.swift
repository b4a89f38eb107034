// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Crypto
import Glibc
import SystemPackage

/// Files of a part folder whose source has changed. They are put aside in it until the document is whole, because most
/// of their bytes are those of the new ones: what is the same is copied from there, and does not cross again.
extension PartFolder {
    /// Puts aside what has come of a file, if anything has: then it is not there any more.
    ///
    /// Two states of a file are kept: the first one, of which most had come as a rule, and the last one. Where the
    /// kernel moves nothing between folders, as one with the first version of Landlock, a file is written over, or
    /// removed.
    ///
    /// - Returns: whether it is to be written over: nothing has changed then.
    func putAside(file index: Int) throws(DocumentError) -> Bool {
        close(file: index)
        let path = tree.entry(ofFile: index).path
        do throws(Errno) {
            let parent = try folder(at: path.parent)
            let status: stat
            do {
                status = try SystemCalls.status(ofName: path.name, in: parent.folder)
            } catch .noSuchFileOrDirectory {
                return false
            }
            // The name is the other device's, and the place this transfer's own: what it has not made itself is kept.
            let isOurs = (try? SystemCalls.requireOwn(status)) != nil
            guard status.st_size > 0 || !isOurs else {
                try SystemCalls.remove(path.name, from: parent.folder, isFolder: false)
                return false
            }
            let aside = try makeAside()
            let first = AsideName.of(path, .first)
            let isSecond = (try? SystemCalls.status(ofName: first, in: aside)) != nil
            do throws(Errno) {
                try SystemCalls.rename(
                    path.name, in: parent.folder, to: isSecond ? AsideName.of(path, .last) : first, in: aside)
            } catch {
                guard error == .improperLink, isOurs else { throw error }
                guard !isRewritable(file: index) else { return true }
                try SystemCalls.remove(path.name, from: parent.folder, isFolder: false)
            }
            return false
        } catch {
            throw failure(error, path)
        }
    }

    /// Puts aside what has a path that the document has not any more; where the kernel moves nothing between folders it
    /// goes with everything else of that kind.
    ///
    /// - Parameter aside: what it is called there.
    func putAside(
        _ name: [UInt8], of folder: borrowing OwnedDescriptor, as aside: [UInt8]
    ) throws(Errno) {
        do {
            try SystemCalls.rename(name, in: folder, to: aside, in: try makeAside())
        } catch .improperLink {}
    }

    /// Removes what was put aside where without that there is no room for what has not come: all of it, because a
    /// document that is built upon nothing is better than none.
    ///
    /// - Parameter isLacking: whether something of a file has not come.
    func makeRoom(lacking isLacking: (Int) -> Bool) {
        guard openAside() != nil, !hasRoom(keeping: [], lacking: isLacking) else { return }
        // What cannot be removed now is removed with the commit.
        try? removeAside()
    }

    /// Whether there is room for what has not come, besides what is there.
    ///
    /// - Parameters:
    ///   - changed: files that stay beside the new ones.
    ///   - isLacking: whether something of a file has not come.
    func hasRoom(keeping changed: Set<Int>, lacking isLacking: (Int) -> Bool) -> Bool {
        guard let free = destination.freeByteCount else { return true }
        var wanted: UInt64 = 0
        for file in 0..<tree.layout.fileCount where isLacking(file) {
            let (size, isKept) = (tree.layout.size(ofFile: file), changed.contains(file))
            if !tree.isSparse(file: file) {
                wanted += isKept ? size : size - min(size, reservedByteCount(of: file))
            } else if isKept {
                // Nobody knows what of it comes: as much as before, as a rule.
                wanted += min(size, reservedByteCount(of: file))
            }
        }
        return wanted <= free
    }

    /// Whether a file can be written where another version of it stands: it has something in it, and is this user's
    /// alone.
    func isRewritable(file index: Int) -> Bool {
        let path = tree.entry(ofFile: index).path
        guard
            tree.layout.size(ofFile: index) > 0, let parent = try? folder(at: path.parent),
            let status = try? SystemCalls.status(ofName: path.name, in: parent.folder)
        else { return false }
        return status.st_size > 0 && (try? SystemCalls.requireOwn(status)) != nil
    }

    /// Bytes that the disk holds for a file already.
    private func reservedByteCount(of file: Int) -> UInt64 {
        let path = tree.entry(ofFile: file).path
        guard
            let parent = try? folder(at: path.parent),
            let status = try? SystemCalls.status(ofName: path.name, in: parent.folder)
        else { return 0 }
        return UInt64(clamping: status.st_blocks) * 512
    }

    /// The folder with what was put aside; nil where nothing was.
    func openAside() -> OwnedDescriptor? {
        try? SystemCalls.openFolder(asideName, within: root)
    }

    /// Removes what was put aside.
    func removeAside() throws(DocumentError) {
        guard let aside = openAside() else { return }
        do {
            try FolderRemoval.removeContents(of: aside)
            try SystemCalls.remove(asideName, from: root, isFolder: true)
        } catch {
            throw failure(error, .root)
        }
    }

    private func makeAside() throws(Errno) -> OwnedDescriptor {
        do {
            try SystemCalls.makeFolder(asideName, in: root, mode: 0o700)
        } catch .fileExists {}
        return try SystemCalls.openFolder(asideName, within: root)
    }
}

/// What files are called that were put aside: their path's digest, because paths can be longer than a name.
enum AsideName {
    /// Which state of a file it is.
    enum State: String, CaseIterable {
        case first
        case last
    }

    private static let moved = ".moved"

    static func of(_ path: EntryPath, _ state: State) -> [UInt8] { digits(of: path) + Array(".\(state.rawValue)".utf8) }

    /// What a file is called that had a path which the document has not any more.
    static func ofMoved(_ path: EntryPath) -> [UInt8] { digits(of: path) + Array(moved.utf8) }

    /// Whether a name is one of those.
    static func isOfMoved(_ name: [UInt8]) -> Bool { name.suffix(moved.utf8.count).elementsEqual(moved.utf8) }

    private static func digits(of path: EntryPath) -> [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        return SHA256.hash(data: path.bytes).prefix(16).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    }
}

extension SystemCalls {
    /// Moves a name from one folder to another, in the place of what has it there.
    static func rename(
        _ name: some Collection<UInt8>, in folder: borrowing OwnedDescriptor, to other: some Collection<UInt8>,
        in destination: borrowing OwnedDescriptor
    ) throws(Errno) {
        let (from, to) = (folder.rawValue, destination.rawValue)
        try withName(name) { (name) throws(Errno) in
            try withName(other) { (other) throws(Errno) in
                try call { renameat(from, name, to, other) }
            }
        }
    }
}
