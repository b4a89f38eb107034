// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonMessages
import BatonProtocol
import BatonTransport
import SwiftProtobuf
import SystemPackage

extension ControlService {
    /// Bytes of the document of an activity that the application continues, whether they have arrived or not.
    func documentRead(
        _ request: WireDocumentReadRequest, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        let range = try Self.range(of: request)
        guard let id = HandoffID(request.handoffID), let handoff = handoffs[id] else {
            throw HandoffError(.noSuchClaim, "the activity has not been continued by this application")
        }
        try await handoff.read(range, to: stream)
    }

    /// Which bytes a read asks for; whether the document has them is not known yet.
    nonisolated static func range(of request: WireDocumentReadRequest) throws(HandoffError) -> FileRange {
        guard request.length <= Handoff.readBound else {
            throw HandoffError(
                .invalidRequest, "at most \(Handoff.readBound) bytes of a document can be read at once")
        }
        let (end, overflow) = request.offset.addingReportingOverflow(request.length)
        let bytes = request.offset..<(overflow ? .max : end)
        let version = FileVersion(bytes: request.version)
        guard version != nil || request.version.isEmpty else {
            throw HandoffError(.invalidRequest, "a version has \(FileVersion.byteCount) bytes")
        }
        guard !request.path.isEmpty else { return FileRange(bytes: bytes, version: version) }
        do {
            return FileRange(bytes: bytes, path: try EntryPath(request.path), version: version)
        } catch {
            throw HandoffError(.invalidRequest, "“\(error.subject)” is no path of a file in a folder")
        }
    }

    func access(
        _ request: WireAccessRequest, from application: Connection, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        guard let path = FilePath(bytes: request.path), path.isAbsolute else {
            throw HandoffError(.invalidRequest, "the path has to be absolute")
        }
        let identifier = applications.identifier(on: application)
        try await withDeadline(SharedFiles.deadline, SharedFiles.silence) { [files] in
            try await files.requireAccess(to: path, by: identifier)
        }
        try await stream.respond(.access(.init()))
        await stream.finish()
    }
}
