import BatonMessages
import BatonProtocol
import BatonTransport

import struct SystemPackage.FilePath

/// The document of one handoff: what the origin says that it is, and its bytes, which can be read in any order before it
/// has arrived.
actor HandoffDocument {
    /// The most bytes of one read: 16 MiB.
    static let readBound: UInt64 = 16 << 20

    private let documents: DocumentService
    private let connection: Connection
    private let claim: ClaimID
    private let queue = ReadQueue()
    private var description: Task<WireDocumentEntry, any Error>?
    /// Where it is on this device; `nil` until it has arrived.
    private var place: FilePath?

    /// - Parameter place: where this device has it already.
    init(_ documents: DocumentService, on connection: Connection, claim: ClaimID, place: FilePath? = nil) {
        self.documents = documents
        self.connection = connection
        self.claim = claim
        self.place = place
    }

    /// What the origin describes it as. It is asked once, because what it sends from then on is that and nothing else.
    func entry() async throws(HandoffError) -> WireDocumentEntry {
        let asking: Task<WireDocumentEntry, any Error>
        if let description {
            asking = description
        } else {
            asking = Task { [documents, connection, claim] in
                try await documents.manifestEntry(from: connection, claim: claim)
            }
            description = asking
        }
        do {
            return try await asking.valueUnlessCancelled
        } catch {
            // An answer that did not come in time may come the next time.
            if !Task.isCancelled { description = nil }
            throw HandoffError(wrapping: error)
        }
    }

    /// It is whole, and there.
    func setArrived(at path: FilePath) {
        place = path
    }

    /// Sends bytes of it to an application: from the file where it is here, else from the origin, ahead of what else is
    /// on its way.
    ///
    /// - Parameter range: what is not there is left out.
    /// - Throws: before the stream was answered. What fails afterwards aborts it.
    func read(_ range: Range<UInt64>, to stream: BatonTransport.Stream) async throws(HandoffError) {
        try await queue.enter()
        do {
            if let place {
                try await documents.read(range, ofFileAt: place, to: stream)
            } else {
                try await documents.read(range, of: entry(), from: connection, claim: claim, to: stream)
            }
            await queue.leave()
        } catch {
            await queue.leave()
            throw error
        }
    }
}
