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

    /// Makes sure that all of a folder is as it was offered: it is walked again. The time of a folder counts nothing,
    /// because the lock of an editor, which came and went, is no change.
    ///
    /// - Throws: `sourceChanged`; `unreadable`, `readFailed`, `busy`, `cancelled`: nobody knows whether it is.
    func requireUnchangedFolder() throws(DocumentError) {
        var now: DocumentTree?
        do throws(DocumentError) {
            now = try treeNow()
        } catch {
            guard ![.unreadable, .readFailed, .busy, .cancelled].contains(error.code) else { throw error }
        }
        let isSame =
            now?.entryCount == tree.entryCount
            && (0..<tree.entryCount).allSatisfy {
                let (entry, before) = (now?[$0].withoutHoles, tree[$0].withoutHoles)
                return entry?.path == before.path && entry?.kind == before.kind
                    && entry?.permissions == before.permissions
            }
        guard isSame else { throw DocumentError(.sourceChanged, tree.label.description) }
    }

    /// A folder that was moved away is the one that was offered, unless another one stands in its place.
    private func treeNow() throws(DocumentError) -> DocumentTree {
        switch root {
        case .file: return tree
        case .folder(let folder):
            guard SystemCalls.leads(path, to: folder) != false else {
                return try DocumentScan.scan(path, selection).tree
            }
            let opened: OwnedDescriptor
            do {
                opened = try SystemCalls.openFolder([UInt8(ascii: ".")], within: folder)
            } catch {
                throw DocumentError(lookingFailed: error, tree.label.description)
            }
            var walk = FolderWalk(path, tree.label, selection)
            try walk.walk(opened, at: .root)
            return try walk.finish().tree
        }
    }
}

/// A file of a document that is being read.
struct OpenedFile: ~Copyable, Sendable {
    /// The open file, a regular one.
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
    /// The meaning of an error of opening or looking at an entry of a document.
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
