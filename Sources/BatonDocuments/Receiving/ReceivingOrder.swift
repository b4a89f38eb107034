// SPDX-License-Identifier: Apache-2.0

import SystemPackage

/// The order to receive a document: from whom, and where.
struct ReceivingOrder: Sendable {
    let tree: DocumentTree
    /// The device that offers it.
    let origin: String
    let identity: DocumentIdentity
    let folder: DestinationFolder
    let ledger: PartFileLedger
    let naming: DocumentNaming
    /// Older copies that the user named.
    let copies: [FilePath]
    /// Whether one of these that cannot be opened is refused, rather than done without.
    let requiresCopies: Bool
    /// A copy that nobody has named.
    let sharedCopy: FilePath?

    /// Opens the older copies.
    func openCopies() throws(DocumentError) -> [OlderCopy] {
        var opened: [OlderCopy] = []
        for copy in copies.prefix(OlderCopy.limit) {
            do throws(DocumentError) {
                opened.append(try OlderCopy(opening: copy))
            } catch {
                guard !requiresCopies else { throw error }
            }
        }
        if let sharedCopy, opened.count < OlderCopy.limit, let copy = OlderCopy(shared: sharedCopy, of: tree) {
            opened.append(copy)
        }
        return opened
    }
}
