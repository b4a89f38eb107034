// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import Glibc
import SystemPackage

/// A file that contains an account key, and that nobody else can read.
enum KeyFile {
    /// Reads the first line.
    ///
    /// - Throws: ``CommandError`` for a file that is missing, belongs to another user, or that others can read.
    static func read(_ path: FilePath, limit: Int) throws -> SecretBytes {
        let shown = path.shown
        let descriptor: FileDescriptor
        do {
            // Non-blocking, so that a pipe without a writer does not hang. It is refused below.
            descriptor = try FileDescriptor.open(path, .readOnly, options: [.nonBlocking, .closeOnExec])
        } catch {
            throw CommandError.usage("the key file \(shown) cannot be read: \(error)")
        }
        return try descriptor.closeAfter {
            let status = try descriptor.stat()
            guard status.type == .regular else {
                throw CommandError.usage("the key file \(shown) is not a file; pass another source on standard input")
            }
            guard status.userID.rawValue == geteuid() else {
                throw CommandError.usage("the key file \(shown) belongs to another user; use one of your own")
            }
            guard status.permissions.rawValue & 0o077 == 0 else {
                throw CommandError.usage(
                    "others can read the key file \(shown); make it yours alone first, with chmod 600")
            }
            return try SecretBytes(readingFrom: descriptor, limit: limit)
        }
    }
}
