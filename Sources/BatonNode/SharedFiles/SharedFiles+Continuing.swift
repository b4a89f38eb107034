// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonMessages
import SystemPackage

/// The continuing side: what other devices call their files becomes files of this one.
extension SharedFiles {
    /// An activity as it is on this device.
    struct Arrival: Sendable {
        var payload: WireActivityPayload
        /// The document, where this device has it in a folder that both share.
        var localDocument: LocalDocument?
    }

    /// A file that need not be fetched.
    struct LocalDocument: Sendable {
        let path: FilePath
        let size: UInt64
    }

    /// An activity of another device with its file URLs as they are here.
    ///
    /// A file of a shared folder need not be there: whoever keeps the folders the same may be behind. The document's
    /// URL stays `baton-document:` until the document is here.
    ///
    /// - Parameters:
    ///   - device: that it is of, for messages.
    ///   - takesLocal: use this device's own copy of the document where it has one.
    /// - Throws: `accessRefused`, with the key and advice, if the folder is not shared here or a link leads out of it.
    ///   `internal` for a payload that no origin may send.
    nonisolated func incoming(
        _ payload: WireActivityPayload, of device: String, takesLocal: Bool
    ) async throws(HandoffError) -> Arrival {
        guard payload.userInfo.containsURL(where: { FileURL.Scheme(of: $0) != nil }) else {
            return Arrival(payload: payload)
        }
        return try await withDeadline(Self.deadline, Self.silence) {
            try await self.translate(payload, of: device, takesLocal: takesLocal)
        }
    }

    private func translate(
        _ payload: WireActivityPayload, of device: String, takesLocal: Bool
    ) throws(HandoffError) -> Arrival {
        let roots = roots
        var arrival = Arrival(payload: payload)
        arrival.payload.userInfo = try payload.userInfo.replacingURLs { (url, key) throws(HandoffError) in
            guard FileURL.Scheme(of: url) != nil else { return url }
            switch FileURL(url) {
            case .root(let place, let suffix):
                let path = try roots.path(of: place, key: key, device: device)
                return FileURL.path(path.bytes + (place.isFolder ? [UInt8(ascii: "/")] : []), suffix: suffix).text
            case .document(let place, let suffix):
                guard payload.summary.kind == .document else {
                    throw HandoffError(.internal, "\(device) sent the place of a document that it does not offer")
                }
                if let place, takesLocal, arrival.localDocument == nil { arrival.localDocument = roots.file(at: place) }
                guard let local = arrival.localDocument else { return FileURL.document(nil, suffix: suffix).text }
                return FileURL.path(local.path.bytes, suffix: suffix).text
            case .path, nil:
                throw HandoffError(.internal, "\(device) sent in “\(key)” what no activity may have: a path of its own")
            }
        }
        return arrival
    }
}

extension SharedRoots {
    /// Where a place of another device is on this one.
    fileprivate func path(
        of place: FileURL.Place, key: String, device: String
    ) throws(HandoffError) -> FilePath {
        guard let root = self[place.root] else {
            throw HandoffError(
                .accessRefused,
                "“\(key)” is a file in the folder that \(device) shares as \(place.root), and this device shares none"
                    + " of that name: run `baton roots add \(place.root) FOLDER` here, and accept again")
        }
        let found: FileLookup.Found
        do {
            found = try FileLookup.find(place.components, beneath: root.folder)
        } catch {
            throw HandoffError(
                .accessRefused,
                "“\(key)” is a file in the shared folder \(place.root), which cannot be used here (\(error)): see"
                    + " `baton roots`")
        }
        guard found != .outside else {
            throw HandoffError(
                .accessRefused,
                "“\(key)” is a file in the shared folder \(place.root), and a link there leads out of it on this"
                    + " device: replace the link, or share the folder that it leads to")
        }
        return root.path(of: place)
    }

    /// Finds the file of this device at a place, in whatever state it is.
    fileprivate func file(at place: FileURL.Place) -> SharedFiles.LocalDocument? {
        guard let root = self[place.root],
            case .file(let size)? = try? FileLookup.find(place.components, beneath: root.folder)
        else { return nil }
        return SharedFiles.LocalDocument(path: root.path(of: place), size: size)
    }
}

extension SharedRoot {
    fileprivate func path(of place: FileURL.Place) -> FilePath {
        place.components.reduce(folder) { path, name in
            FilePath(bytes: path.bytes + [UInt8(ascii: "/")] + name) ?? path
        }
    }
}
