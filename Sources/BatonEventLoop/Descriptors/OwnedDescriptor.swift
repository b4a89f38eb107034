// SPDX-License-Identifier: Apache-2.0

import Glibc
package import SystemPackage

/// A file descriptor with one owner, closed exactly once.
///
/// It closes when it goes out of scope, on every path, unless ``close()`` or ``release()`` was called before.
package struct OwnedDescriptor: ~Copyable, Sendable {
    /// The number of the descriptor, for system calls. Borrowed: it must not be closed or kept.
    package let rawValue: Int32

    /// Takes ownership of an open descriptor, which nobody else may close from then on.
    package init(takingOwnershipOf rawValue: Int32) {
        self.rawValue = rawValue
    }

    /// Takes ownership of an open descriptor, which nobody else may close from then on.
    package init(takingOwnershipOf descriptor: FileDescriptor) {
        self.init(takingOwnershipOf: descriptor.rawValue)
    }

    deinit {
        // Linux releases the number whatever close returns, EINTR included. A second close could hit another
        // descriptor.
        _ = Glibc.close(rawValue)
    }

    /// The descriptor as swift-system's type, for its typed calls. Borrowed: it must not be closed or kept.
    package var fileDescriptor: FileDescriptor { FileDescriptor(rawValue: rawValue) }

    /// Closes the descriptor and reports an error of the file system.
    ///
    /// - Throws: the error of `close(2)` (`EIO`, `ENOSPC`, `EDQUOT` of a network file system). The descriptor is closed
    ///   all the same.
    package consuming func close() throws(Errno) {
        let descriptor = release()
        guard Glibc.close(descriptor) == 0 else {
            let error = Errno(rawValue: errno)
            guard error != .interrupted else { return }
            throw error
        }
    }

    /// Ends the ownership without closing. The caller owns the number from then on.
    package consuming func release() -> Int32 {
        let descriptor = rawValue
        discard self
        return descriptor
    }
}
