// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import Glibc
import SystemPackage

/// Checks a destination before anything is fetched. The node checks again when it writes.
enum DestinationCheck {
    static func check(_ folder: FilePath) throws(CommandError) {
        let shown = SafeText.escaped(path: folder.bytes)
        let status: Stat
        do {
            status = try folder.stat()
        } catch {
            throw CommandError(
                .destination, code: "destinationUnwritable",
                error == .noSuchFileOrDirectory
                    ? "the folder \(shown) does not exist: make it first, or name another one with --to"
                    : "the folder \(shown) cannot be used (\(error)): name another one with --to")
        }
        guard status.type == .directory else {
            throw CommandError(
                .destination, code: "destinationUnwritable", "\(shown) is no folder: name one with --to")
        }
        guard folder.withPlatformString({ access($0, W_OK | X_OK) }) == 0 else {
            throw CommandError(
                .destination, code: "destinationUnwritable",
                "the folder \(shown) is not writable (\(Errno(rawValue: errno))): name another one with --to")
        }
    }
}
