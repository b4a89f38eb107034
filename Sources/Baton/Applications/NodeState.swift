// SPDX-License-Identifier: Apache-2.0

/// Whether an application has its node.
public enum NodeState: Sendable, Hashable {
    /// The application was not started, or was closed.
    case idle
    /// There is no node, or it has no room for the application, for this reason; it is tried again.
    case missing(reason: String)
    /// The node knows the application.
    case connected
}
