public import SystemPackage

/// What ``ApplicationRegistry/installed()`` found.
public struct InstalledApplications: Sendable, Hashable {
    /// A file that was passed over.
    public struct Problem: Sendable, Hashable, CustomStringConvertible {
        public let path: FilePath
        /// A clause about the file. Parts of the file may stand in it as they are: escape it before a terminal sees it.
        public let reason: String

        public var description: String { "\(path): \(reason)" }
    }

    /// By name.
    public internal(set) var applications: [ApplicationManifest]
    /// What could not be used; the others are not affected.
    public internal(set) var problems: [Problem]

    /// The application of an identifier.
    public subscript(identifier: String) -> ApplicationManifest? {
        applications.first { $0.identifier == identifier }
    }
}
