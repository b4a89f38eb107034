// SPDX-License-Identifier: Apache-2.0

package import SystemPackage

/// The reason why a socket, a listener or another part of the event loop failed.
package struct SocketError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure, for programs that act on it.
    package enum Code: Sendable, Hashable {
        /// Another program listens on this port or socket file.
        case addressInUse
        /// Nothing is at the path, or a folder on the way is missing.
        case notFound
        /// The machine answers, and no program listens there.
        case connectionRefused
        /// There is no address, port or route for it, or the network is down.
        case unreachable
        /// No answer came in time.
        case timedOut
        /// The task that asked was cancelled.
        case cancelled
        /// The other side broke the connection, or no longer reads.
        case connectionReset
        /// This side has closed the socket.
        case closed
        /// The process or the system has no free descriptor, memory, thread or watch.
        case outOfResources
        /// Any other failure; see ``SocketError/underlyingError``.
        case other
    }

    /// The kind of failure.
    package let code: Code

    /// The error of the system call, if one failed.
    package let underlyingError: Errno?

    /// The activity that failed, for the message: "connecting to 192.0.2.1:4000".
    package let activity: String

    /// Makes an error.
    package init(_ code: Code, while activity: String, underlyingError: Errno? = nil) {
        self.code = code
        self.activity = activity
        self.underlyingError = underlyingError
    }

    /// Makes an error of a failed system call.
    init(_ error: Errno, while activity: String) {
        self.init(Code(error), while: activity, underlyingError: error)
    }

    /// One sentence for people: the activity and the reason.
    package var description: String {
        let reason =
            switch code {
            case .addressInUse: "another program already uses this address"
            case .notFound: "there is nothing at this path"
            case .connectionRefused: "nobody listens there"
            case .unreachable: "there is no way to reach it"
            case .timedOut: "there was no answer in time"
            case .cancelled: "it was cancelled"
            case .connectionReset: "the other side broke the connection"
            case .closed: "the socket is closed"
            case .outOfResources: "the system has run out of descriptors, memory or threads"
            case .other: "the system reported an error"
            }
        guard let underlyingError else { return "\(activity): \(reason)" }
        return "\(activity): \(reason) (\(underlyingError))"
    }
}

extension SocketError.Code {
    init(_ error: Errno) {
        // The system's numbers are an open set; all others are `other`.
        switch error {
        case .addressInUse: self = .addressInUse
        case .noSuchFileOrDirectory, .notDirectory: self = .notFound
        case .connectionRefused: self = .connectionRefused
        case .noRouteToHost, .networkUnreachable, .networkDown, .hostIsDown, .addressNotAvailable,
            .addressFamilyNotSupported:
            self = .unreachable
        case .timedOut: self = .timedOut
        case .connectionReset, .brokenPipe, .connectionAbort, .networkReset, .socketNotConnected:
            self = .connectionReset
        case .badFileDescriptor: self = .closed
        case .tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory, .noBufferSpace: self = .outOfResources
        default: self = .other
        }
    }
}

extension Errno {
    /// Whether a non-blocking call has nothing to do now.
    var meansWouldBlock: Bool { self == .wouldBlock || self == .resourceTemporarilyUnavailable }
}
