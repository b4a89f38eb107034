import BatonMessages
import BatonProtocol
import BatonTransport
import SwiftProtobuf
import SystemPackage

/// What applications ask about documents and files.
extension ControlService {
    /// Bytes of the document of an activity that the application continues, whether they have arrived or not.
    func documentRead(
        _ request: WireDocumentReadRequest, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        guard request.length <= HandoffDocument.readBound else {
            throw HandoffError(
                .invalidRequest, "at most \(HandoffDocument.readBound) bytes of a document can be read at once")
        }
        guard let id = HandoffID(request.handoffID), let handoff = await handoffs[id] else {
            throw HandoffError(.noSuchClaim, "the activity has not been continued by this application")
        }
        let (range, overflow) = request.offset.addingReportingOverflow(request.length)
        try await handoff.document().read(request.offset..<(overflow ? .max : range), to: stream)
    }

    /// May the application use this file?
    func access(
        _ request: WireAccessRequest, from application: Connection, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        guard let path = FilePath(bytes: request.path), path.isAbsolute else {
            throw HandoffError(.invalidRequest, "the path has to be absolute")
        }
        try await files.requireAccess(to: path, by: await applications.identifier(on: application))
        try await stream.respond(.access(.init()))
        await stream.finish()
    }
}
