// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import SystemPackage

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
    package func register(_ manifest: ApplicationManifest) throws(ApplicationManifestError) -> Bool {
        let name = Self.fileName(of: manifest.identifier)
        let bytes = try RegisteredManifest.encode(manifest)
        return try writing { () throws(Errno) in
            try DurableFile.makeFolder(folder)
            let names = try registeredNames()
            let isNew = !names.contains(name)
            guard !isNew || names.count < Self.applicationBound else { return nil }
            try DurableFile.replace(folder.appending(name), with: bytes)
            return isNew
        }
    }

    /// Removes a registered manifest, even one that cannot be read. A desktop entry is not touched.
    ///
    /// - Returns: `false` if no manifest with the identifier is registered.
    @discardableResult
    package func remove(_ identifier: String) throws(ApplicationManifestError) -> Bool {
        guard DottedName.isIdentifier(identifier) else { return false }
        return try writing { () throws(Errno) in
            do throws(Errno) {
                try DurableFile.remove(folder.appending(Self.fileName(of: identifier)))
                return true
            } catch .noSuchFileOrDirectory {
                return false
            }
        }
    }

    /// - Parameter change: returns nil if the registry is full.
    private func writing(_ change: () throws(Errno) -> Bool?) throws(ApplicationManifestError) -> Bool {
        let result: Bool?
        do throws(Errno) {
            result = try change()
        } catch {
            throw .init("\(folder) cannot be written to (\(error))")
        }
        guard let result else {
            throw .init(
                "\(Self.applicationBound) applications are registered in \(folder), which is the most: "
                    + "remove one first")
        }
        return result
    }
}
