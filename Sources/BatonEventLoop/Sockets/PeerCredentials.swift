// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The process at the other end of a Unix-domain socket, as the kernel saw it at `connect` or `socketpair`
/// (`SO_PEERCRED`).
///
/// Decisions may rest on the user id. The process may have ended since, and its number may be another's.
package struct PeerCredentials: Sendable, Hashable {
    /// The process id.
    package let processID: Int32
    /// The effective user id.
    package let userID: UInt32
    /// The effective group id.
    package let groupID: UInt32

    /// Whether the process belongs to the user of this process, or to root.
    package var isThisUserOrRoot: Bool { userID == geteuid() || userID == 0 }
}
