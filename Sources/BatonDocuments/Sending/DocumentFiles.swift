// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// The files of a scanned document, to be opened one by one.
///
/// The folder is held open: what is beneath it is what is sent, whatever happens to its path. A document that is one
/// file is opened by its path each time, so that a file that took its place shows. Every call blocks on the disk; safe
/// to use from any thread.
final class DocumentFiles: Sendable {
    private enum Root: ~Copyable, Sendable {
        case file
        case folder(OwnedDescriptor)
    }

    /// The entries of the document.
    let tree: DocumentTree

    private let path: FilePath
    private let selection: DocumentSelection
    private let root: Root

    /// Opens the folder of a document, where it is one.
    ///
    /// - Throws: `unreadable`, `sourceChanged` where it is no folder any more, or not there: another may be about to
    ///   come.
    init(_ document: ScannedDocument) throws(DocumentError) {
        tree = document.tree
        path = document.path
        selection = document.selection
        guard tree.isFolder else {
            root = .file
            return
        }
        do {
            root = .folder(try SystemCalls.open(path, O_RDONLY | O_DIRECTORY))
        } catch {
            guard error != .notDirectory, error != .noSuchFileOrDirectory else {
                throw DocumentError(.sourceChanged, tree.label.description, underlyingError: error)
            }
            throw DocumentError(openingFailed: error, path)
        }
    }

    /// Opens a file as it is now, which its version tells: no link is followed, and nothing but a file is kept open.
    ///
    /// - Throws: `sourceChanged` where there is no such file any more, `unreadable`, `readFailed`, `busy`.
    func open(file index: Int) throws(DocumentError) -> OpenedFile {
        let entry = tree.entry(ofFile: index).path
        let name = tree.displayed(entry)
        let flags = O_RDONLY | O_NONBLOCK | O_NOCTTY
        do {
            let file: OwnedDescriptor
            switch root {
            case .file: file = try SystemCalls.open(path, flags)
            case .folder(let folder): file = try SystemCalls.open(entry.bytes, beneath: folder, flags)
            }
            return try OpenedFile(file, called: name)
        } catch let error as DocumentError {
            throw error
        } catch let error as Errno {
            throw DocumentError(lookingFailed: error, name)
        } catch {
            throw DocumentError(.readFailed, name)
        }
    }

    /// Makes sure that all of a folder is as it was offered: each file, each folder in it, and the folder itself, in
    /// whose place another one may stand. The time of a folder tells that an entry has come, gone or got another name.
    /// Then the folder is walked again, because the lock of an editor, which came and went, is no change.
    ///
    /// - Throws: `sourceChanged`; `unreadable`, `readFailed`, `busy`, `cancelled`: nobody knows whether it is.
    func requireUnchangedFolder() throws(DocumentError) {
        guard try wasTouched() else { return }
        let now = try treeNow()
        let isSame =
            now?.entryCount == tree.entryCount
            && (0..<tree.entryCount).allSatisfy {
                let (entry, before) = (now?[$0].withoutHoles, tree[$0].withoutHoles)
                return entry?.path == before.path && entry?.kind == before.kind
                    && entry?.permissions == before.permissions
            }
        guard isSame else { throw DocumentError(.sourceChanged, tree.label.description) }
    }

    /// Looks at the path again; nil if no document is there any more.
    ///
    /// - Throws: `unreadable`, `readFailed`, `busy` or `cancelled`: nobody knows what is there.
    private func treeNow() throws(DocumentError) -> DocumentTree? {
        do throws(DocumentError) {
            return try DocumentScan.scan(path, selection).tree
        } catch {
            guard ![.unreadable, .readFailed, .busy, .cancelled].contains(error.code) else { throw error }
            return nil
        }
    }

    /// Makes sure, right after a folder was walked, that nothing has come or gone since. Its folders are walked one
    /// after the other, so that an entry that moves from one to another may be found in neither.
    ///
    /// - Throws: `sourceChanged`: walk it again. `unreadable`, `readFailed`, `busy`.
    func requireUntouchedFolder() throws(DocumentError) {
        if try wasTouched() { throw DocumentError(.sourceChanged, tree.label.description) }
    }

    /// Whether something may have come or gone in a folder, or another one stands in its place.
    ///
    /// - Throws: `sourceChanged` where a file is another one now, or something is not there; `unreadable`,
    ///   `readFailed`, `busy`.
    private func wasTouched() throws(DocumentError) -> Bool {
        switch root {
        case .file: return false
        case .folder(let folder):
            // A folder that was moved away is the one that was offered, as before.
            var wasTouched = SystemCalls.leads(path, to: folder) == false
            for index in 0..<tree.entryCount {
                if try !isUntouched(tree[index], in: folder) { wasTouched = true }
            }
            return wasTouched
        }
    }

    /// - Returns: whether nothing has come or gone in it, where it is a folder, and who may enter it is the same.
    private func isUntouched(
        _ entry: DocumentEntry, in folder: borrowing OwnedDescriptor
    ) throws(DocumentError) -> Bool {
        let status: stat
        do {
            status =
                try entry.path.isRoot
                ? SystemCalls.status(of: folder) : SystemCalls.status(ofName: entry.path.bytes, in: folder)
        } catch {
            throw DocumentError(lookingFailed: error, tree.displayed(entry.path))
        }
        let identity = FileIdentity(status)
        switch entry.kind {
        case .file(let file):
            if file.version == FileVersion(of: identity) { return true }
            guard
                let birth = try? SystemCalls.birth(ofName: entry.path.bytes, in: folder),
                file.version == FileVersion(of: identity.told(byBirth: birth))
            else { throw DocumentError(.sourceChanged, tree.displayed(entry.path)) }
            return true
        case .folder: return identity.modified == entry.modified && status.permissionBits == entry.permissions
        // A link cannot change in place: another one changes the time of its folder.
        case .link: return true
        }
    }
}

/// A file of a document that is being read.
struct OpenedFile: ~Copyable, Sendable {
    /// What is open: a regular file.
    let descriptor: OwnedDescriptor
    /// Its state when it was opened: what is written to it later makes it another one
    /// (``SystemCalls/settledStatus(of:sleep:)``).
    let identity: FileIdentity
    /// Bytes that it had when it was opened.
    var size: UInt64 { identity.size }

    private let name: String

    fileprivate init(_ file: consuming OwnedDescriptor, called name: String) throws {
        let status = try SystemCalls.settledStatus(of: file)
        guard status.st_mode & S_IFMT == S_IFREG else { throw DocumentError(.sourceChanged, name) }
        identity = FileIdentity(status)
        descriptor = file
        self.name = name
    }

    /// Its state now. It differs from ``identity`` once the file was written to, or its path was given to another one.
    ///
    /// - Throws: `readFailed`.
    func currentIdentity() throws(DocumentError) -> FileIdentity {
        do {
            return FileIdentity(try SystemCalls.status(of: descriptor))
        } catch {
            throw DocumentError(.readFailed, name, underlyingError: error)
        }
    }

    /// Whether it was of this version when it was opened: one that was told by its inode, or by when it was made.
    func isOfVersion(_ version: FileVersion) -> Bool {
        if version == FileVersion(of: identity) { return true }
        return version == FileVersion(of: identity.told(byBirth: SystemCalls.birth(of: descriptor)))
    }

    /// Whether any of these bytes is in no hole. True where the file system cannot tell.
    func hasData(in range: Range<UInt64>) -> Bool {
        guard let start = Int64(exactly: range.lowerBound) else { return true }
        let found = baton_next_data(descriptor.rawValue, start)
        guard found >= 0 else { return -found != Int64(ENXIO) }
        return UInt64(found) < range.upperBound
    }
}

extension DocumentTree {
    /// An entry for people: the document's name and the path below it, escaped.
    func displayed(_ entry: EntryPath) -> String {
        entry.isRoot ? label.description : "\(label)/\(entry)"
    }
}

extension DocumentError {
    /// What it means that something of a document could not be opened or looked at.
    fileprivate init(lookingFailed error: Errno, _ name: String) {
        let code: Code =
            switch error {
            case .permissionDenied, .notPermitted: .unreadable
            case _ where error.isAboutTheFile: .sourceChanged
            case _ where error.isShortage: .busy
            default: .readFailed
            }
        self.init(code, name, underlyingError: error)
    }
}

extension Errno {
    /// Whether opening failed because the path leads to nothing, or to something else than before.
    fileprivate var isAboutTheFile: Bool {
        switch self {
        case .noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels, .improperLink, .noSuchAddressOrDevice,
            .isDirectory, .staleNFSFileHandle, .operationNotSupportedByDevice:
            true
        default: false
        }
    }
}
