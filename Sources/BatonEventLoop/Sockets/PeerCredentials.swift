// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Who is at the other end of a Unix-domain socket, as the kernel saw it at `connect` or `socketpair` (`SO_PEERCRED`).
///
/// The user id is what a decision may rest on. The process can have ended since, and its number can be another's.
package struct PeerCredentials: Sendable, Hashable {
    /// The process id.
    package let processID: Int32
    /// The effective user id.
    package let userID: UInt32
    /// The effective group id.
    package let groupID: UInt32

    /// Whether it is a process of the user that this one runs as, or of root.
    package var isThisUserOrRoot: Bool { userID == geteuid() || userID == 0 }
}
