// SPDX-License-Identifier: Apache-2.0

package import SystemPackage

/// The result of ``ApplicationRegistry/installed()``.
package struct InstalledApplications: Sendable, Hashable {
    /// A file that was skipped.
    package struct Problem: Sendable, Hashable, CustomStringConvertible {
        package let path: FilePath
        /// A clause about the file. It may quote the file: escape it before a terminal shows it.
        package let reason: String

        package var description: String { "\(path): \(reason)" }
    }

    /// By name.
    package internal(set) var applications: [ApplicationManifest]
    /// The files that could not be used; they do not affect the others.
    package internal(set) var problems: [Problem]

    /// The application of an identifier.
    package subscript(identifier: String) -> ApplicationManifest? {
        applications.first { $0.identifier == identifier }
    }
}
