import BatonEventLoop
import Glibc
public import SystemPackage

/// What this device has of an earlier state of a document, for it to be built upon: a file, or a folder in which each file
/// is looked up under the path that it has in the document.
public final class OlderCopy: Sendable {
    /// How many copies a document can be built upon: 16.
    public static let limit = 16

    enum Content: Sendable {
        case file(BasisFile)
        case folder(BasisFolder)
    }

    let content: Content

    /// Opens a copy that the user names, whose links are followed. Blocking.
    ///
    /// - Throws: `missing`, `unreadable`, `notRegularFile`, ...
    public init(opening path: FilePath) throws(DocumentError) {
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
