// SPDX-License-Identifier: Apache-2.0

import struct SystemPackage.FilePath

/// The documents that were fetched for applications, which may then use them: a pure value.
struct GrantedDocuments: Sendable {
    /// Documents of one application; the oldest is forgotten for a further one, and the application is then refused it.
    static let boundPerApplication = 128
    /// Applications at most. A further one evicts the one whose last grant is oldest.
    static let applicationBound = 128

    private var documents: [String: [FilePath]] = [:]
    /// Applications that were granted something, the latest last.
    private var order: [String] = []

    /// Notes a document.
    ///
    /// - Parameters:
    ///   - path: without links and `..`.
    ///   - application: its identifier.
    mutating func insert(_ path: FilePath, for application: String) {
        order.removeAll { $0 == application }
        if order.count == Self.applicationBound { documents[order.removeFirst()] = nil }
        order.append(application)
        var paths = documents[application, default: []]
        paths.removeAll { $0 == path }
        paths.append(path)
        documents[application] = paths.suffix(Self.boundPerApplication)
    }

    /// Whether the application may use what is there.
    func contains(_ path: FilePath, for application: String) -> Bool {
        documents[application]?.contains(path) == true
    }
}
