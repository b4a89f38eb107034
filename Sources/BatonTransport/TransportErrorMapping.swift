// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop
import BatonProtocol

extension TransportError {
    /// Maps a failure of the protocol.
    init(connectionError error: ConnectionError) {
        switch error {
        case .helloTimeout, .pingTimeout:
            self.init(.connectionLost, "the other side did not answer in time")
        case .notBaton:
            self.init(.protocolViolation, "the other side does not speak Baton's protocol")
        case .peerTooOld(let version):
            self.init(
                .protocolViolation, "the other side speaks version \(version) of the protocol: update Baton there")
        case .peerTooNew(let version):
            self.init(.protocolViolation, "the other side speaks version \(version) of the protocol: update Baton here")
        case _:
            self.init(.protocolViolation, "the other side broke the protocol (\(error))")
        }
    }

    /// The same error with the code of the peer's GOAWAY, for example that this side exceeded a limit.
    func explained(by goAway: ApplicationErrorCode) -> TransportError {
        guard code == .connectionLost, goAway != .noError else { return self }
        return TransportError(code, "the other side closed the connection (\(goAway))")
    }

    /// Maps the reason why a stream could not be opened.
    init(openError error: StreamOpenError) {
        switch error {
        case .goingAway:
            self.init(.goingAway, "the connection is closing")
        case .dead(let error):
            self.init(connectionError: error)
        case .helloAwaited:
            self.init(.connectionLost, "the other side has not said hello")
        case .tooMuchUnderWay:
            self.init(.limitExceeded, "too much is under way on this connection")
        case .messageTooLarge:
            self.init(.limitExceeded, "the request is over \(Limits.messageBytes) bytes")
        }
    }

    /// Maps the reason why a request could not be answered.
    init(respondError error: StreamRespondError) {
        switch error {
        case .notAwaitingAnswer:
            self = .streamClosed
        case .messageTooLarge:
            self.init(.limitExceeded, "the answer is over \(Limits.messageBytes) bytes")
        }
    }

    /// Maps the reason why a dial failed.
    package init(dialing error: SocketError) {
        self.init(error.code == .cancelled ? .cancelled : .unreachable, "\(error)")
    }
}
