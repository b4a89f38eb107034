// SPDX-License-Identifier: Apache-2.0

package import BatonTransport

/// Why there is no connection to the node.
package enum NodeClientError: Error, Sendable, CustomStringConvertible {
    /// No node listens at the socket.
    case noNode(socketPath: String)
    /// The node closed the connection before it said a word, or said none in time.
    case notTaken(TransportError)
    /// Somebody listens, but does not speak as a node does, or went away.
    case notUsable(TransportError)

    package var description: String {
        switch self {
        case .noNode: "no node is running here: start one with `baton node`"
        case .notTaken(let error):
            "the node on this machine did not take the connection (\(error)): it may be stopping or suspended, or serve"
                + " as many applications and commands as it can; end some, or try again"
        case .notUsable(let error): "the node on this machine cannot be used: \(error)"
        }
    }
}
