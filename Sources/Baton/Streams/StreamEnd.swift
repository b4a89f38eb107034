// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport

/// This application's end of a stream between two applications, shared by its input and its output.
///
/// Releasing both resets an unfinished stream.
final class StreamEnd: Sendable {
    let stream: BatonTransport.Stream
    /// The current reader and writer: at most one each, as the stream below requires.
    private let use = Lock(Use())

    private struct Use {
        var isReading = false
        var isWriting = false
    }

    init(_ stream: BatonTransport.Stream) {
        self.stream = stream
    }

    func read() async throws(UserActivityError) -> Buffer? {
        let isFree = use.withLock { use in
            defer { use.isReading = true }
            return !use.isReading
        }
        guard isFree else { throw .inUse("read") }
        defer { use.withLock { $0.isReading = false } }
        do {
            return try await stream.read()
        } catch {
            throw UserActivityError(stream: error)
        }
    }

    /// Writes buffers in order, each after the queue has shrunk to the bound.
    func write(_ buffers: some Sequence<Buffer>, queueBound: Int) async throws(UserActivityError) {
        let isFree = use.withLock { use in
            defer { use.isWriting = true }
            return !use.isWriting
        }
        guard isFree else { throw .inUse("written") }
        defer { use.withLock { $0.isWriting = false } }
        do throws(TransportError) {
            for buffer in buffers { try await stream.write(buffer, queueBound: queueBound) }
        } catch {
            throw UserActivityError(stream: error)
        }
    }

    func finish() async {
        await stream.finish()
    }

    func fail(status: UInt8) async {
        await stream.fail(status: status)
    }

    func cancel() async {
        await stream.reset(.cancelled)
    }
}

extension UserActivityError {
    /// Why a continuation stream broke.
    fileprivate init(stream error: TransportError) {
        if case .reset(let code) = error.code, code.programStatus != nil {
            self.init(.streamFailed, error.message)
        } else {
            self.init(HandoffError(error))
        }
    }

    fileprivate static func inUse(_ what: String) -> UserActivityError {
        UserActivityError(.streamInUse, "the stream is being \(what) by another task: one at a time may")
    }
}
