import BatonEventLoop
import Crypto
import Glibc
import SystemPackage

/// Files of a part folder whose source has changed. They are put aside in it until the document is whole, because most of
/// their bytes are those of the new ones: what is the same is copied from there, and does not cross again.
extension PartFolder {
    /// Puts aside what has come of a file, if anything has: then it is not there any more.
    ///
    /// Two states of a file are kept: the first one, of which most had come as a rule, and the last one.
    func putAside(file index: Int) throws(DocumentError) {
        close(file: index)
        let path = tree.entry(ofFile: index).path
        do throws(Errno) {
            let parent = try folder(at: path.parent)
            let status: stat
            do {
                status = try SystemCalls.status(ofName: path.name, in: parent.folder)
            } catch .noSuchFileOrDirectory {
                return
            }
            guard status.st_size > 0 else {
                return try SystemCalls.remove(path.name, from: parent.folder, isFolder: false)
            }
            let aside = try makeAside()
            let first = AsideName.of(path, .first)
            let isSecond = (try? SystemCalls.status(ofName: first, in: aside)) != nil
            try SystemCalls.rename(
                path.name, in: parent.folder, to: isSecond ? AsideName.of(path, .last) : first, in: aside)
        } catch {
            throw failure(error, path)
        }
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

    static func of(_ path: EntryPath, _ state: State) -> [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        let digest = SHA256.hash(data: path.bytes).prefix(16)
        return digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] } + Array(".\(state.rawValue)".utf8)
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
