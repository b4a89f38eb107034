// SPDX-License-Identifier: Apache-2.0

import Glibc

/// One entry of a document: the file or folder itself, or what is in the folder.
package struct DocumentEntry: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case file(File)
        case folder
        /// A symbolic link that stays inside.
        case link(LinkTarget)
    }

    /// Properties of a file that are told before its bytes come.
    package struct File: Sendable, Hashable {
        /// Bytes.
        package var size: UInt64
        /// Whether it may be executed.
        package var isExecutable: Bool
        /// Whether it has holes, which are to be holes again.
        package var isSparse: Bool
        /// Tells one state of its content from another.
        package var version: FileVersion

        /// A file, neither executable nor sparse by default.
        package init(size: UInt64, isExecutable: Bool = false, isSparse: Bool = false, version: FileVersion = .none) {
            self.size = size
            self.isExecutable = isExecutable
            self.isSparse = isSparse
            self.version = version
        }
    }

    /// Where it is in the document.
    package var path: EntryPath
    package var kind: Kind
    /// When its content last changed, of a link when it was made; nil where nobody said so.
    package var modified: FileIdentity.Time?
    /// Read, write and execute bits of owner, group and others at the origin, 0 to 0o777; nil for a link, and if the
    /// origin does not say.
    package var permissions: UInt16?

    package init(
        path: EntryPath, kind: Kind, modified: FileIdentity.Time? = nil, permissions: UInt16? = nil
    ) {
        self.path = path
        self.kind = kind
        self.modified = modified
        self.permissions = permissions
    }

    /// The permissions that a file or folder arrives with: those at its origin, less what the umask takes.
    ///
    /// If the origin does not say, only the owner gets access: it may be a private key.
    func mode(allowedBy umask: mode_t) -> mode_t {
        let isExecutable = file?.isExecutable ?? true
        return mode_t(permissions ?? (isExecutable ? 0o700 : 0o600)) & 0o777 & ~umask
    }

    package var file: File? {
        switch kind {
        case .file(let file): file
        case .folder, .link: nil
        }
    }
}

/// Tells one state of a file's content from another: 16 bytes that say nothing else.
///
/// The same version of a file has the same bytes, but for the residue of ``FileIdentity``.
package struct FileVersion: Sendable, Hashable {
    package static let byteCount = 16

    /// The more significant half.
    package let high: UInt64
    /// The less significant half.
    package let low: UInt64

    /// A version that is never compared: of an origin that tells none.
    package static let none = FileVersion(high: 0, low: 0)

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// A version from its 16 bytes, big endian; nil for any other number of bytes.
    package init?(bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes.dropFirst(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The 16 bytes, big endian.
    package var bytes: [UInt8] {
        withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { Array($0) }
    }
}
