// SPDX-License-Identifier: Apache-2.0

/// Why a node cannot start. Each reason is a sentence that ends with what to do.
package enum NodeError: Error, Sendable, CustomStringConvertible {
    /// Another node serves this home, or has its account.
    case alreadyRunning(String)
    /// The account, or the certificate in it, is missing or unusable.
    case account(String)
    /// A port, a socket, a folder, a thread or a file of an earlier run cannot be had.
    case unusable(String)

    package var description: String {
        switch self {
        case .alreadyRunning(let reason), .account(let reason), .unusable(let reason): reason
        }
    }
}
