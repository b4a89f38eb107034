// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials

/// The handoff that brought an activity to this application, for as long as the activity lives.
///
/// Its end lets the claim on the other device's activity go.
final class ContinuedHandoff: Sendable {
    /// The name of the origin.
    let device: String
    /// The document that is on its way; `nil` without a document.
    let document: WireContinuedDocument?
    /// The arrival of the document; `nil` without a document.
    let arrival: DocumentArrival?
    private let id: [UInt8]
    private let client: NodeClient
    private let hold: Lock<Hold>

    private enum Hold: Sendable {
        /// The node has no answer yet: an end now would be one.
        case unanswered(BatonTransport.Stream, isLetGo: Bool)
        case held(BatonTransport.Stream)
        case over

        var stream: BatonTransport.Stream? {
            switch self {
            case .unanswered(let stream, _), .held(let stream): stream
            case .over: nil
            }
        }
    }

    init(_ question: NodeQuestion<WireContinueRequest>, over client: NodeClient) {
        let request = question.request
        device = request.device
        document = request.hasDocument ? request.document : nil
        arrival = document.map(DocumentArrival.init)
        id = Array(request.handoffID)
        self.client = client
        hold = Lock(.unanswered(question.stream, isLetGo: false))
    }

    /// Opens a stream to the application that offers the activity.
    func openStream() async throws(HandoffError) -> BatonTransport.Stream {
        try await client.openContinuationStream(ofHandoff: id)
    }

    /// Follows the document's arrival, if there is a document, until the node reports its end.
    ///
    /// - Parameter hasArrived: is called before any waiting reader.
    func followDocument(_ hasArrived: @escaping @Sendable (URL) -> Void) {
        guard let arrival, let stream = hold.withLock({ $0.stream }) else { return }
        // It ends with the stream, which the end of this handoff ends.
        Task { [weak self] in
            await arrival.follow(stream, hasArrived: hasArrived)
            // The node reports nothing further. The received part of a failed document is released.
            if arrival.hasFailed { self?.letGo() }
        }
    }

    /// The most attempts at reading bytes of a document that changes meanwhile. Then the read fails.
    static let changeLimit = 4

    /// Bytes of the document, or of a file in it, all of one version, in requests of at most ``NodeClient/readBound``.
    func readDocument(at offset: UInt64, length: Int, of path: [UInt8]) async throws(HandoffError) -> Data {
        var changes = 0
        while true {
            do throws(HandoffError) {
                return try await readVersion(at: offset, length: length, of: path)
            } catch {
                guard error.code == .documentChanged, changes < Self.changeLimit else { throw error }
                changes += 1
            }
        }
    }

    private func readVersion(at offset: UInt64, length: Int, of path: [UInt8]) async throws(HandoffError) -> Data {
        var data = Data()
        var version: [UInt8] = []
        while data.count < length {
            let wanted = min(length - data.count, NodeClient.readBound)
            let (position, overflow) = offset.addingReportingOverflow(UInt64(data.count))
            guard !overflow else { break }
            let before = data.count
            let stream: BatonTransport.Stream
            (stream, version) = try await client.openDocument(
                ofHandoff: id, at: position, length: wanted, ofFile: path, version: version)
            do {
                var buffer = try await stream.read()
                while let read = buffer {
                    read.withBytes { data.append(contentsOf: $0) }
                    buffer = try await stream.read(reusing: read)
                }
            } catch {
                throw HandoffError(error)
            }
            if data.count - before < wanted { break }
        }
        return data
    }

    /// The node has its answer. The claim is held from now on, unless it was released meanwhile.
    func wasAnswered() {
        let isLetGo = hold.withLock { hold in
            guard case .unanswered(let stream, let isLetGo) = hold else { return false }
            hold = .held(stream)
            return isLetGo
        }
        if isLetGo { letGo() }
    }

    /// Lets the claim go, after the answer at the earliest. Again does nothing.
    func letGo() {
        let held = hold.withLock { hold -> BatonTransport.Stream? in
            switch hold {
            case .unanswered(let stream, _):
                hold = .unanswered(stream, isLetGo: true)
                return nil
            case .held(let stream):
                hold = .over
                return stream
            case .over:
                return nil
            }
        }
        guard let held else { return }
        Task { await held.finish() }
    }
}
