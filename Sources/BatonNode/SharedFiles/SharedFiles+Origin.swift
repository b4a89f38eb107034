// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonMessages
import SystemPackage

/// The origin's side: files of this device become what they are for others.
extension SharedFiles {
    /// User info as it may leave this device, with the document that goes with it.
    ///
    /// A file in a shared folder keeps its place there, and needs no transfer. The first other file becomes the
    /// document of an activity that has none; a second one cannot come along. What is said of that names the key and
    /// never the path, because the other device hears it as well.
    ///
    /// - Parameters:
    ///   - userInfo: of the application.
    ///   - document: what goes with the activity so far.
    /// - Throws: `invalidRequest`.
    nonisolated func outgoing(
        _ userInfo: WireDictionaryValue, document: DocumentSource?
    ) async throws(HandoffError) -> (userInfo: WireDictionaryValue, document: DocumentSource?) {
        // Most have no file in them, and are not to wait for a disk.
        guard userInfo.containsURL(where: { FileURL.Scheme(of: $0) != nil }) else {
            return (userInfo, document)
        }
        return try await withDeadline(Self.deadline, Self.silence) {
            try await self.translate(userInfo, document: document)
        }
    }

    private func translate(
        _ userInfo: WireDictionaryValue, document: DocumentSource?
    ) throws(HandoffError) -> (userInfo: WireDictionaryValue, document: DocumentSource?) {
        let roots = roots
        var document = document
        var documentPath = document.flatMap { try? FileLookup.resolved($0.path) }
        let translated = try userInfo.replacingURLs { (url, key) throws(HandoffError) in
            guard let scheme = FileURL.Scheme(of: url) else { return url }
            guard scheme == .file else {
                throw HandoffError(
                    .invalidRequest,
                    "“\(key)” is a URL that nodes use among themselves: offer the document once it has arrived")
            }
            guard case .path(let bytes, let suffix)? = FileURL(url), let path = FilePath(bytes: bytes) else {
                throw HandoffError(.invalidRequest, "“\(key)” is a URL of no file of this device")
            }
            let resolved: FilePath
            do {
                resolved = try FileLookup.resolved(path)
            } catch {
                throw HandoffError(.invalidRequest, "“\(key)” names a file that is not there or cannot be reached")
            }
            var place = roots.place(of: resolved)
            place?.isFolder = bytes.count > 1 && bytes.last == UInt8(ascii: "/")
            if resolved == documentPath { return FileURL.document(place, suffix: suffix).text }
            if let place { return FileURL.root(place, suffix: suffix).text }
            guard document == nil else {
                throw HandoffError(
                    .invalidRequest,
                    "“\(key)” names a second file outside of all shared folders, and an activity takes one document"
                        + " along: share its folder with `baton roots add`, or offer it by itself")
            }
            do {
                document = try DocumentSource(DocumentScan.scanFile(path))
            } catch {
                throw HandoffError(
                    .invalidRequest,
                    "“\(key)” names what cannot be sent as a document: only a file can that may be read, or share its"
                        + " folder with `baton roots add`")
            }
            documentPath = resolved
            return FileURL.document(nil, suffix: suffix).text
        }
        return (translated, document)
    }
}
