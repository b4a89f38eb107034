// SPDX-License-Identifier: Apache-2.0

import BatonMessages
import BatonProtocol
import BatonTransport
import SwiftProtobuf
import Testing

@Suite("HandoffError")
struct HandoffErrorTests {
    @Test("A failure keeps its code, message and device across the wire")
    func crossesTheWire() throws {
        let error = HandoffError(.claimHeld, "it is taken", device: "desktop")
        let bytes: [UInt8] = try error.failure.serializedBytes()
        #expect(HandoffError(try WireFailure(serializedBytes: bytes)) == error)
    }

    @Test("A failure that says nothing, or that this version does not know, still says something")
    func unknownFailures() {
        #expect(HandoffError(WireFailure()).code == .internal)
        #expect(!HandoffError(WireFailure()).message.isEmpty)
        var newer = WireFailure()
        newer.code = .UNRECOGNIZED(9_999)
        newer.message = "out of cheese"
        #expect(HandoffError(newer) == HandoffError(.internal, "out of cheese"))
    }

    /// Another device's sentence is passed on in events with words in front of it, and must still fit a message.
    @Test("Of what the other side says the beginning is kept")
    func isBounded() throws {
        func kept(_ message: String, device: String = "") -> HandoffError {
            HandoffError(
                .with {
                    $0.code = .claimHeld
                    $0.message = message
                    $0.device = device
                })
        }
        let (longest, name) = (String(repeating: "x", count: 1024), String(repeating: "n", count: 63))
        #expect(kept(longest, device: name) == HandoffError(.claimHeld, longest, device: name))
        #expect(kept(longest + "x", device: name + "n") == HandoffError(.claimHeld, longest, device: name))
        #expect(kept(longest).shortened == HandoffError(.claimHeld, String(repeating: "x", count: 300)))
        // One character of as many bytes as a message may have.
        let marks = "e" + String(repeating: "\u{301}", count: 32_000)
        #expect(kept(marks, device: marks) == HandoffError(.claimHeld, "the other side failed"))
        let bytes: [UInt8] = try kept(String(repeating: "ü", count: 32_000)).failure.serializedBytes()
        #expect(bytes.count < 2048)
    }

    @Test("Any error is one, and one stays what it is")
    func wrapsAnything() {
        struct Strange: Error {}
        let own = HandoffError(.claimHeld, "it is taken", device: "desktop")
        #expect(HandoffError(wrapping: own) == own)
        #expect(HandoffError(wrapping: TransportError(.unreachable, "why")) == HandoffError(.peerUnreachable, "why"))
        #expect(HandoffError(wrapping: CancellationError()).code == .cancelled)
        #expect(HandoffError(wrapping: Strange()).code == .internal)
    }

    @Test(
        "What became of a connection or stream",
        arguments: [
            (TransportError.Code.unreachable, HandoffError.Code.peerUnreachable), (.refused, .refused),
            (.protocolViolation, .internal), (.connectionLost, .connectionLost), (.goingAway, .connectionLost),
            (.streamClosed, .connectionLost), (.limitExceeded, .limitExceeded), (.cancelled, .cancelled),
            (.reset(.cancelled), .cancelled), (.reset(.refused), .refused),
            (.reset(.sourceChanged), .documentChanged), (.reset(.limitExceeded), .limitExceeded),
            (.reset(.timeout), .timedOut), (.reset(.internalError), .connectionLost),
            (.reset(ApplicationErrorCode(rawValue: 70_000)), .connectionLost),
        ])
    func mapsTransportErrors(from: TransportError.Code, to: HandoffError.Code) {
        #expect(HandoffError(TransportError(from, "why")) == HandoffError(to, "why"))
    }
}
