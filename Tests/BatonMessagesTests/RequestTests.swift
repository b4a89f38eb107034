// SPDX-License-Identifier: Apache-2.0

import BatonMessages
import BatonProtocol
import BatonTransport
import SwiftProtobuf
import Testing

@Suite("Requests", .timeLimit(.minutes(1)))
struct RequestTests {
    /// The outcome of a request whose other side runs `answer`.
    private func outcome(
        when answer: @escaping @Sendable (IncomingStream) async throws -> Void
    ) async throws -> HandoffError? {
        let pair = try await ConnectedPair()
        let answering = Task { try await answer(try await pair.incoming()) }
        var failure: HandoffError?
        do throws(HandoffError) {
            _ = try await pair.dialer.request(.status(WireStatusRequest()))
        } catch {
            failure = error
        }
        try await answering.value
        await pair.close()
        return failure
    }

    @Test("The answer and the stream are handed on, and the request is what was asked")
    func succeeds() async throws {
        let failure = try await outcome { incoming in
            guard case .status = try WireRequest.decode(incoming.request) else {
                throw HandoffError(.internal, "other")
            }
            try await incoming.stream.respond(.status(WireStatusResponse()))
            await incoming.stream.finish()
        }
        #expect(failure == nil)
    }

    @Test("A failure of the other side is thrown as it is")
    func fails() async throws {
        let error = HandoffError(.claimHeld, "it is taken", device: "desktop")
        #expect(try await outcome { await $0.stream.fail(error) } == error)
    }

    @Test(
        "What is no answer is an error",
        arguments: [
            ([0xFF, 0xFF], HandoffError.Code.internal),  // no message
            ([], .internal),  // a message without a kind
        ] as [([UInt8], HandoffError.Code)])
    func unreadable(answer: [UInt8], code: HandoffError.Code) async throws {
        #expect(try await outcome { try await $0.stream.respond(answer) }?.code == code)
    }

    @Test("A reset instead of an answer says why by its code")
    func reset() async throws {
        #expect(try await outcome { await $0.stream.reset(.refused) }?.code == .refused)
        #expect(try await outcome { await $0.stream.reset(.timeout) }?.code == .timedOut)
    }

    @Test("The end of the connection instead of an answer")
    func connectionEnds() async throws {
        #expect(try await outcome { await $0.stream.connection.close() }?.code == .connectionLost)
    }

    @Test("A request over the limit is refused here, and one that is no message there")
    func badRequests() async throws {
        let pair = try await ConnectedPair()
        var request = WireWithdrawRequest()
        request.idPrefix = String(repeating: "0", count: MessageLimits.size)
        let large = request
        await #expect { _ = try await pair.dialer.request(.withdraw(large)) } throws: {
            ($0 as? HandoffError)?.code == .limitExceeded
        }
        #expect { _ = try WireRequest.decode([0xFF]) } throws: { ($0 as? HandoffError)?.code == .invalidRequest }
        #expect { _ = try WireRequest.decode([]) } throws: { ($0 as? HandoffError)?.code == .unsupported }
        // A kind that a newer version knows.
        #expect { _ = try WireRequest.decode([0xC2, 0x3E, 0x00]) } throws: {
            ($0 as? HandoffError)?.code == .unsupported
        }
        await pair.close()
    }

    @Test("A message that nests deeper than the limit is refused before it is decoded")
    func tooDeep() throws {
        var bytes: [UInt8] = []
        // Value.array (12) in ArrayValue.values (1), many times, inside each message that holds a value.
        for _ in 0..<40 {
            bytes = [0x0A] + varint(bytes.count) + bytes
            bytes = [0x62] + varint(bytes.count) + bytes
        }
        var options = BinaryDecodingOptions()
        options.messageDepthLimit = MessageLimits.depth
        #expect(throws: (any Error).self) { _ = try WireValue(serializedBytes: bytes, options: options) }
    }

    private func varint(_ value: Int) -> [UInt8] {
        var value = value
        var bytes: [UInt8] = []
        while value >= 0x80 {
            bytes.append(UInt8(value & 0x7F) | 0x80)
            value >>= 7
        }
        return bytes + [UInt8(value)]
    }
}
