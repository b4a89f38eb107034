// SPDX-License-Identifier: Apache-2.0

package import BatonAccount
package import BatonTLS

/// Why a node cannot start. Each description is a sentence that ends with what to do.
package enum NodeError: Error, Sendable, CustomStringConvertible {
    /// Another node serves this home.
    case alreadyRunning(socket: String)
    /// Another node runs on the account of this home, and does not listen at this socket.
    case accountInUse(socket: String)
    /// The account is missing or unusable.
    case account(AccountError)
    /// The port is taken, or below 1024.
    case portInUse(UInt16)
    case portReserved(UInt16)
    /// The device's certificate cannot be used.
    case identity(TLSError)
    /// A socket, a folder, a thread or a file of an earlier run cannot be had; the reason is the whole sentence.
    case unusable(String)

    package var description: String {
        switch self {
        case .alreadyRunning(let socket):
            "a node is running here already (\(socket)): see `baton status`, or set BATON_HOME for a second one"
        case .accountInUse(let socket):
            "a node is running with this account already, but does not listen at \(socket): it was started with another"
                + " XDG_RUNTIME_DIR than this one; stop it, or set BATON_HOME for a second one"
        case .account(let error):
            "\(error)"
        case .portInUse(let port):
            "port \(port) is in use by another program: choose another with --port, or leave it out to take a free one"
        case .portReserved(let port):
            "port \(port) is below 1024, where no device dials: choose a higher one, or leave --port out"
        case .identity(let error):
            "this device's certificate cannot be used: \(error); run `baton account leave` and join again"
        case .unusable(let reason):
            reason
        }
    }
}
