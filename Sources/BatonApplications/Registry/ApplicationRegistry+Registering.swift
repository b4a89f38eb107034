// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
package import SystemPackage

extension ApplicationRegistry {
    private static let suffix = ".json"

    static func fileName(of identifier: String) -> String { identifier + suffix }

    /// The names of registered manifests, in no order. Temporary files of a killed write begin with a dot.
    func registeredNames() throws(Errno) -> [String] {
        try DurableFile.names(in: folder, limit: 4 * Self.applicationBound)
            .filter { $0.hasSuffix(Self.suffix) && !$0.hasPrefix(".") }
    }

    /// Writes a manifest into the registry (0600), in place of one with the same identifier.
    ///
    /// - Returns: whether the identifier is new.
    @discardableResult
    package func register(_ manifest: ApplicationManifest) throws(ApplicationRegistryError) -> Bool {
        let name = Self.fileName(of: manifest.identifier)
        let path = folder.appending(name)
        let bytes: [UInt8]
        do throws(ApplicationManifestError) {
            bytes = try RegisteredManifest.encode(manifest)
        } catch {
            throw .unusable(error)
        }
        let names: [String]
        do throws(Errno) {
            try DurableFile.makeFolder(folder)
            names = try registeredNames()
        } catch {
            throw .system(error, folder)
        }
        let isNew = !names.contains(name)
        guard !isNew || names.count < Self.applicationBound else { throw .full(folder) }
        do throws(Errno) {
            try DurableFile.replace(path, with: bytes)
        } catch {
            throw .system(error, path)
        }
        return isNew
    }

    /// Removes a registered manifest, even one that cannot be read. A desktop entry is not touched.
    ///
    /// - Returns: `false` if no manifest with the identifier is registered.
    @discardableResult
    package func remove(_ identifier: String) throws(ApplicationRegistryError) -> Bool {
        guard DottedName.isIdentifier(identifier) else { return false }
        let path = folder.appending(Self.fileName(of: identifier))
        do throws(Errno) {
            try DurableFile.remove(path)
            return true
        } catch {
            if error == .noSuchFileOrDirectory { return false }
            throw .system(error, path)
        }
    }
}

/// Why the registry could not be changed.
package enum ApplicationRegistryError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The manifest cannot be kept.
    case unusable(ApplicationManifestError)
    /// ``ApplicationRegistry/applicationBound`` applications are registered.
    case full(FilePath)
    /// The system refused a file or folder.
    case system(Errno, FilePath)

    package var description: String {
        switch self {
        case .unusable(let error): "the manifest cannot be kept: \(error)"
        case .full(let folder):
            "\(ApplicationRegistry.applicationBound) applications are registered in \(folder), which is the most: "
                + "remove one first"
        case .system(let error, let path): "\(path) cannot be written to (\(error))"
        }
    }
}
