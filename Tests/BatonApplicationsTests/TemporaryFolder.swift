// SPDX-License-Identifier: Apache-2.0

import Foundation
import SystemPackage

/// A folder for one test, which goes with it.
final class TemporaryFolder: Sendable {
    let path: FilePath

    init() throws {
        path = FilePath(FileManager.default.temporaryDirectory.path).appending(
            "baton-applications-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path.string) }

    /// Writes a file, and the folders on the way to it.
    @discardableResult
    func write(_ text: String, to name: String, permissions: Int = 0o600) throws -> FilePath {
        try write(Array(text.utf8), to: name, permissions: permissions)
    }

    @discardableResult
    func write(_ bytes: [UInt8], to name: String, permissions: Int = 0o600) throws -> FilePath {
        let file = path.appending(name)
        try FileManager.default.createDirectory(
            atPath: file.removingLastComponent().string, withIntermediateDirectories: true)
        try Data(bytes).write(to: URL(filePath: file.string))
        try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: file.string)
        return file
    }

    /// A program: a script for `sh`.
    @discardableResult
    func program(_ name: String, _ script: String) throws -> FilePath {
        try write("#!/bin/sh\n" + script + "\n", to: name, permissions: 0o755)
    }

    func read(_ name: String) -> String? {
        FileManager.default.contents(atPath: path.appending(name).string).map { String(decoding: $0, as: UTF8.self) }
    }

    func remove(_ name: String) throws {
        try FileManager.default.removeItem(atPath: path.appending(name).string)
    }
}
