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
    let device: String
    /// The document that is on its way; `nil` without a document.
    let document: WireContinuedDocument?
    /// The arrival of the document; `nil` without a document.
    let arrival: DocumentArrival?
    private let id: [UInt8]
    private let client: NodeClient
    private let stream: BatonTransport.Stream
    private let hold = Lock((isAnswered: false, isLetGo: false))

    init(_ question: NodeQuestion<WireContinueRequest>, over client: NodeClient) {
        let request = question.request
        device = request.device
        document = request.hasDocument ? request.document : nil
        arrival = document.map(DocumentArrival.init)
        id = Array(request.handoffID)
        self.client = client
        stream = question.stream
    }

    func openStream() async throws(HandoffError) -> BatonTransport.Stream {
        try await client.openContinuationStream(ofHandoff: id)
    }

    /// Follows the document's arrival, if there is a document, until the node reports its end.
    ///
    /// - Parameter hasArrived: is called before any waiting reader.
    func followDocument(_ hasArrived: @escaping @Sendable (URL) -> Void) {
        guard let arrival else { return }
        // It ends with the stream, which the end of this handoff ends.
        Task { [weak self, stream] in
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
        let (end, overflow) = offset.addingReportingOverflow(UInt64(length))
        var data = Data()
        do {
            _ = try await client.readDocument(offset..<(overflow ? .max : end), ofHandoff: id, ofFile: path) {
                data.append(contentsOf: $0)
            }
        } catch {
            throw HandoffError(wrapping: error)
        }
        return data
    }

    /// The node has its answer. The claim is held from now on, unless it was released meanwhile.
    func wasAnswered() {
        let isLetGo = hold.withLock { hold in
            hold.isAnswered = true
            return hold.isLetGo
        }
        if isLetGo { end() }
    }

    /// Lets the claim go, after the answer at the earliest: an end before would be one. Again does nothing.
    func letGo() {
        let isHeld = hold.withLock { hold in
            defer { hold.isLetGo = true }
            return hold.isAnswered && !hold.isLetGo
        }
        if isHeld { end() }
    }

    private func end() { Task { [stream] in await stream.finish() } }
}
