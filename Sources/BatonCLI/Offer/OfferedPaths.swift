// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonMessages
import SystemPackage

/// The paths of an offer: one document, or several entries of one folder.
struct OfferedPaths: Sendable, Equatable {
    /// The absolute path of the only document, or of the folder that has all of them.
    let document: FilePath
    /// The entries of the folder, if there are several paths.
    let selection: DocumentSelection
    /// The title of several paths if the user gives none; empty for one document, which the node names.
    let title: String

    /// - Parameter paths: at least one. A path that is there more than once is taken once.
    init(_ paths: [FilePath]) throws(CommandError) {
        let absolute = paths.map(CommandEnvironment.absolute)
        let folders = absolute.map { path in
            let folder = path.removingLastComponent()
            return (try? FileLookup.resolved(folder)) ?? folder
        }
        if let other = folders.firstIndex(where: { $0 != folders[0] }) {
            throw .usage(
                "\(paths[0].shown) and \(paths[other].shown) are in different folders: offer each by itself, or a"
                    + " folder that has both")
        }
        let count = Set(absolute.map(\.lastComponent)).count
        guard count > 1 else {
            (document, selection, title) = (absolute[0], .all, "")
            return
        }
        document = absolute[0].removingLastComponent()
        let labels: [DocumentLabel]
        do {
            labels = try absolute.map { (path) throws(DocumentError) in try DocumentLabel(of: path) }
        } catch {
            throw .usage(error.message)
        }
        guard let selection = DocumentSelection(labels) else {
            throw .usage(
                "\(count) paths are too many: an offer takes \(DocumentSelection.nameLimit), with"
                    + " \(DocumentSelection.byteLimit) bytes in their names; offer their folder")
        }
        self.selection = selection
        let first = labels[0].description.beginning(bytes: OfferDraft.maximumTitleSize - 16)
        title = "\(first) and \(count - 1) more"
    }
}
