// SPDX-License-Identifier: Apache-2.0

import SystemPackage

/// Which document of its origin one is, whatever is in it. It tells another document of the same name from another
/// version of the same one.
package struct DocumentIdentity: Sendable, Hashable {
    /// Bytes of each half that is known.
    package static let byteCount = 16

    /// Stands for the file or folder; empty where its origin does not say.
    package let file: [UInt8]
    /// Stands for its place: the folder that it is in, and its name there. Programs that save put another file in the
    /// place of the one before. Empty where its origin does not say.
    package let place: [UInt8]

    /// Of an origin that does not say.
    package static let unknown = DocumentIdentity(file: [UInt8](), place: [UInt8]())

    /// An identity as another device tells it: what has not ``byteCount`` bytes is unknown.
    package init(file: some Collection<UInt8>, place: some Collection<UInt8>) {
        self.file = file.count == Self.byteCount ? Array(file) : []
        self.place = place.count == Self.byteCount ? Array(place) : []
    }

    /// The identity of what is at a path that ends with a name: checksums (XXH3-128) of numbers of the file system,
    /// which are no secret. Each selection of entries is a document of its own, so that the part of one is not spent on
    /// another. Its names belong to its place, and nothing stands for the file.
    init(
        _ document: FileIdentity, at path: FilePath, called label: DocumentLabel,
        _ selection: DocumentSelection = .all
    ) {
        let name = selection.names.reduce(label.bytes) { $0 + [UInt8(ascii: "/")] + $1 }
        let folder = path.removingLastComponent()
        let place = Self.checksum(of: name, in: folder.isEmpty ? "." : folder)
        let file = selection.isAll ? Self.checksum(of: document, at: path) : nil
        self.init(file: file ?? [], place: place ?? [])
    }

    /// Whether it is at the same place: the same file, or one that was put there.
    package func hasPlace(of other: DocumentIdentity) -> Bool { !place.isEmpty && place == other.place }

    /// Whether it is the same file, wherever that is now, or another one which has got its number since.
    package func hasFile(of other: DocumentIdentity) -> Bool { !file.isEmpty && file == other.file }

    /// Whether this is surely not the same document.
    package func isOther(than other: DocumentIdentity) -> Bool {
        guard !place.isEmpty, !other.place.isEmpty, place != other.place else { return false }
        return file.isEmpty || file != other.file
    }

    /// The checksum of a name in a folder; nil if the folder cannot be looked at.
    private static func checksum(of name: [UInt8], in folder: FilePath) -> [UInt8]? {
        guard let status = try? SystemCalls.status(at: folder) else { return nil }
        return checksum(of: FileIdentity(status), at: folder, name)
    }

    /// The checksum of the number of a file or folder, and of what follows.
    ///
    /// The device's number stands for the file system only if nothing else does: a disk that is plugged in again gets
    /// another one.
    private static func checksum(of file: FileIdentity, at path: FilePath, _ rest: [UInt8] = []) -> [UInt8] {
        var writer = FieldWriter()
        writer.append((try? FileSystem(at: path))?.number ?? file.device)
        writer.append(file.inode)
        let checksum = (writer.bytes + rest).withUnsafeBytes { ChunkChecksum(of: $0) }
        return FileVersion(high: checksum.high, low: checksum.low).bytes
    }
}
