// SPDX-License-Identifier: Apache-2.0

/// What a kernel has to have before a document is received: without it a mistake of ours, or of the file system, would
/// write where another device likes.
enum NeededCall: CaseIterable {
    /// Opening beneath a folder and through no link, decided by the kernel.
    case openBeneath
    /// Confining the thread that writes.
    case landlock

    /// What it is called, and where it is to be had.
    var remedy: String {
        switch self {
        case .openBeneath: "openat2: update to Linux 5.6 or later, and let the container allow it"
        case .landlock: "Landlock: update to Linux 5.13 or later, and name landlock in the kernel's lsm= parameter"
        }
    }
}
