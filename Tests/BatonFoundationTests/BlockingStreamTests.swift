// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonEventLoop
import BatonFoundation
import BatonMessages
import BatonProtocol
import BatonTestSupport
import BatonTransport
import Foundation
import SwiftProtobuf
import Testing

@Suite("Blocking streams", .serialized)
struct BlockingStreamTests {
    /// Gives each pair of streams to code on a thread of its own, which blocks.
    private final class Blocking: UserActivityDelegate {
        private let serve: @Sendable (ContinuationInputStream, ContinuationOutputStream) -> Void

        init(_ serve: @escaping @Sendable (ContinuationInputStream, ContinuationOutputStream) -> Void) {
            self.serve = serve
        }

        func userActivity(
            _ activity: UserActivity, didReceive inputStream: ContinuationInput, outputStream: ContinuationOutput
        ) async {
            await withCheckedContinuation { continuation in
                let thread = Thread { [serve] in
                    serve(ContinuationInputStream(inputStream), ContinuationOutputStream(outputStream))
                    continuation.resume()
                }
                thread.start()
            }
        }
    }

    /// The other end of streams to an application that serves them so.
    private func open(
        _ count: Int, _ serve: @escaping @Sendable (ContinuationInputStream, ContinuationOutputStream) -> Void
    ) async throws -> (streams: [BatonTransport.Stream], node: ApplicationNode, all: [any Sendable]) {
        let (node, home) = try await ApplicationNode.start()
        let application = try Application(.init(identifier: "org.example.blocking"), home: home)
        let activity = try UserActivity(activityType: "org.example.blocking", application: application)
        let delegate = Blocking(serve)
        activity.delegate = delegate
        activity.supportsContinuationStreams = true
        activity.becomeCurrent()
        try await eventually("offered") { await !node.offered.isEmpty }
        let id = try #require(await node.offered.first?.request.activityID)
        var streams: [BatonTransport.Stream] = []
        for _ in 0..<count {
            streams.append(try await node.ask(.continuationStream(.with { $0.activityID = id })).stream)
        }
        return (streams, node, [application, activity, delegate])
    }

    @Test("Bytes go both ways to their ends, on more threads than there are processors")
    func echo() async throws {
        let sent = (0..<1 << 20).map { UInt8(truncatingIfNeeded: $0 / 7) }
        let (streams, node, all) = try await open(8) { input, output in
            input.open()
            output.open()
            var buffer = [UInt8](repeating: 0, count: 10_000)
            while case let count = input.read(&buffer, maxLength: buffer.count), count > 0 {
                guard output.write(buffer, maxLength: count) == count else { return }
            }
            #expect(input.streamStatus == .atEnd && input.streamError == nil)
            #expect(input.read(&buffer, maxLength: 1) == 0)
            output.close()
            #expect(output.streamStatus == .closed && output.write(buffer, maxLength: 1) == -1)
        }
        let echoed = try await withThrowingTaskGroup(of: Bool.self, returning: Bool.self) { group in
            for stream in streams {
                group.addTask {
                    try await stream.write(Buffer(copying: sent))
                    await stream.finish()
                    return true
                }
                group.addTask {
                    var received: [UInt8] = []
                    while let buffer = try await stream.read() { buffer.withBytes { received.append(contentsOf: $0) } }
                    return received == sent
                }
            }
            return try await group.allSatisfy { $0 }
        }
        #expect(echoed)
        withExtendedLifetime(all) {}
        await node.stop()
    }

    @Test("An aborted stream is -1 with the typed error, on both sides of it")
    func aborted() async throws {
        let codes = Lock<[UserActivityError.Code?]>([])
        let (streams, node, all) = try await open(1) { input, output in
            input.open()
            output.open()
            var byte: UInt8 = 0
            let read = input.read(&byte, maxLength: 1)
            let error = (input.streamError as? UserActivityError)?.code
            let written = output.write(&byte, maxLength: 1)
            codes.withLock { $0 = [read == -1 ? error : nil, written == -1 ? .userCancelled : nil] }
        }
        await streams[0].reset(.cancelled)
        try await eventually("told") { codes.withLock { !$0.isEmpty } }
        #expect(codes.withLock { $0 } == [.userCancelled, .userCancelled])
        withExtendedLifetime(all) {}
        await node.stop()
    }

    @Test("Closing an input that was not read to its end aborts the stream; one that was never opened gives nothing")
    func closing() async throws {
        let (streams, node, all) = try await open(1) { input, output in
            var byte: UInt8 = 0
            #expect(input.streamStatus == .notOpen && input.read(&byte, maxLength: 1) == -1)
            #expect(output.write(&byte, maxLength: 1) == -1)
            input.open()
            #expect(input.hasBytesAvailable)
            input.close()
            #expect(input.streamStatus == .closed && input.read(&byte, maxLength: 1) == -1)
        }
        let error = await #expect(throws: TransportError.self) { while try await streams[0].read() != nil {} }
        #expect(error?.code == .reset(.cancelled))
        let orphan = ContinuationOutputStream(toMemory: ())
        orphan.open()
        #expect(orphan.streamStatus == .error && !orphan.hasSpaceAvailable)
        withExtendedLifetime(all) {}
        await node.stop()
    }
}
