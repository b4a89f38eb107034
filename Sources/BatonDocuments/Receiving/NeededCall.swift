// SPDX-License-Identifier: Apache-2.0

/// A call that the kernel must have before a document is received. Without it a mistake of ours, or of the file system,
/// would write where another device likes.
enum NeededCall: CaseIterable {
    /// Opening beneath a folder and through no link, decided by the kernel.
    case openBeneath
    /// Confining the thread that writes.
    case landlock

    /// Its name, and the way to get it.
    var remedy: String {
        switch self {
        case .openBeneath: "openat2: update to Linux 5.6 or later, and let the container allow it"
        case .landlock: "Landlock: update to Linux 5.13 or later, and name landlock in the kernel's lsm= parameter"
        }
    }
}
