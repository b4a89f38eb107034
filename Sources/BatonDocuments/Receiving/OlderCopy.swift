// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
package import SystemPackage

/// An earlier state of a document on this device, to build upon: a file, or a folder in which each
/// file is looked up under the path that it has in the document.
package final class OlderCopy: Sendable {
    /// How many copies a document can be built upon: 16.
    package static let limit = 16
    /// Of a copy that no user has named, files of fewer bytes are not built upon: 1 MiB. The other device hears digests
    /// of what is built upon, and what short files hold could be guessed by them.
    package static let leastSharedSize: UInt64 = 1 << 20

    enum Content: Sendable {
        case file(BasisFile)
        case folder(BasisFolder)
    }

    let content: Content
    /// Files of fewer bytes in the folder are not built upon.
    let leastSize: UInt64

    /// Opens a copy that the user names, whose links are followed. Blocking.
    ///
    /// - Throws: `missing`, `unreadable`, `notRegularFile`, ...
    package convenience init(opening path: FilePath) throws(DocumentError) {
        try self.init(path, leastSize: 0)
    }

    /// Opens what is at a document's place in a folder that this device shares with the one that offers it. Blocking.
    ///
    /// - Returns: `nil` where it cannot be read; where it is a file and the document a folder, or the reverse: it is no
    ///   state of that document then; and where it is a file of less than ``leastSharedSize``.
    convenience init?(shared path: FilePath, of tree: DocumentTree) {
        do {
            try self.init(path, leastSize: Self.leastSharedSize)
        } catch {
            return nil
        }
        switch content {
        case .file(let file): guard !tree.isFolder, file.size >= leastSize else { return nil }
        case .folder: guard tree.isFolder else { return nil }
        }
    }

    private init(_ path: FilePath, leastSize: UInt64) throws(DocumentError) {
        self.leastSize = leastSize
        do {
            content = .file(try BasisFile(try DocumentSource.open(path).takeFile()))
        } catch let error as DocumentError where error.code == .isFolder {
            content = .folder(try Self.openFolder(path))
        } catch let error as DocumentError {
            throw error
        } catch {
            throw DocumentError(.readFailed, path.displayed)
        }
    }

    /// The folder, where it is one.
    var folder: BasisFolder? {
        switch content {
        case .file: nil
        case .folder(let folder): folder
        }
    }

    private static func openFolder(_ path: FilePath) throws(DocumentError) -> BasisFolder {
        do {
            return BasisFolder(try SystemCalls.open(path, O_RDONLY | O_DIRECTORY))
        } catch {
            throw DocumentError(openingFailed: error, path)
        }
    }
}
