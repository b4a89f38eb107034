// SPDX-License-Identifier: Apache-2.0

import struct SystemPackage.FilePath

/// The documents that were fetched for applications, which may then use them: a pure value.
struct GrantedDocuments: Sendable {
    /// Documents of all applications at most. A further one evicts the oldest, which its application is then refused.
    static let bound = 4096

    private struct Grant: Sendable, Hashable {
        let path: FilePath
        let application: String
    }

    /// The latest last.
    private var grants: [Grant] = []

    /// Notes a document.
    ///
    /// - Parameters:
    ///   - path: without links and `..`.
    ///   - application: its identifier.
    mutating func insert(_ path: FilePath, for application: String) {
        let grant = Grant(path: path, application: application)
        grants.removeAll { $0 == grant }
        if grants.count == Self.bound { grants.removeFirst() }
        grants.append(grant)
    }

    /// Whether the application may use what is there.
    func contains(_ path: FilePath, for application: String) -> Bool {
        grants.contains(Grant(path: path, application: application))
    }
}
