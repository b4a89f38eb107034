package import BatonTransport

/// Why there is no connection to the node.
package enum NodeClientError: Error, Sendable, CustomStringConvertible {
    /// Nobody listens at the socket.
    case noNode(socketPath: String)
    /// Somebody listens, but does not speak as a node does, or went away.
    case notUsable(TransportError)

    package var description: String {
        switch self {
        case .noNode: "no node is running here: start one with `baton node`"
        case .notUsable(let error): "the node on this machine cannot be used: \(error)"
        }
    }
}
