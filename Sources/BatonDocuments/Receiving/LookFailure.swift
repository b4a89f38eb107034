// SPDX-License-Identifier: Apache-2.0

import SystemPackage

/// A look at what an earlier transfer left that a disk is said not to answer: for tests.
struct LookFailure: Sendable {
    enum Look: Sendable {
        /// What has a part's name.
        case name
        /// Opening a part.
        case part
        /// Whether a file of a part that is a folder is there still.
        case file
        /// Opening such a file, to read what has come of it.
        case content
    }

    let look: Look
    let error: Errno
}
