// SPDX-License-Identifier: Apache-2.0

package import SystemPackage

/// What ``ApplicationRegistry/installed()`` found.
package struct InstalledApplications: Sendable, Hashable {
    /// A file that was passed over.
    package struct Problem: Sendable, Hashable, CustomStringConvertible {
        package let path: FilePath
        /// A clause about the file. Parts of the file may stand in it as they are: escape it before a terminal sees it.
        package let reason: String

        package var description: String { "\(path): \(reason)" }
    }

    /// By name.
    package internal(set) var applications: [ApplicationManifest]
    /// What could not be used; the others are not affected.
    package internal(set) var problems: [Problem]

    /// The application of an identifier.
    package subscript(identifier: String) -> ApplicationManifest? {
        applications.first { $0.identifier == identifier }
    }
}
