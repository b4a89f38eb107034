// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonMessages

extension HandoffError {
    /// The failure of a handoff whose document failed.
    init(_ error: DocumentError) {
        let code: Code =
            switch error.code {
            case .missing, .unreadable, .notRegularFile, .noName, .isFolder, .tooManyEntries, .tooDeep:
                .documentUnreadable
            case .sourceChanged: .documentChanged
            case .badRange: .invalidRequest
            case .destinationExists: .destinationExists
            case .destinationMissing, .destinationNotWritable, .destinationUnsuitable, .notConfinable, .badName,
                .tooLarge,
                .writeFailed:
                .destinationUnwritable
            case .destinationFull: .destinationFull
            case .checksumMismatch, .excess, .badRecord: .corrupted
            case .basisChanged: .documentChanged
            case .incomplete: .connectionLost
            case .readFailed: .documentUnreadable
            case .stateUnavailable: .internal
            case .systemUnsuitable: .unsupported
            case .busy: .limitExceeded
            case .cancelled: .cancelled
            }
        // The command knows more ways out of this one.
        let isTaken = code == .destinationExists
        self.init(
            code, isTaken ? "'\(error.subject)' exists already and was not overwritten" : error.message,
            advises: !isTaken)
    }

    /// The same for another device: without paths of this one, and without names of files that it has not sent.
    var withoutPlaces: HandoffError {
        let sentence: String? =
            switch code {
            // It comes back to the device whose document it is, where that is why it was let go.
            case .documentUnreadable: "it, or an older copy of it, cannot be read"
            case .destinationExists: "something of that name is there already, and was not overwritten"
            case .destinationUnwritable: "it cannot be written to where it was to go"
            case .destinationFull: "there is not enough room for it there"
            case .accessRefused: "a file that it names could not be used there"
            case .applicationNotStarted: "the application there was not started"
            case .handoffOff: "Handoff is switched off there"
            case .internal: "something failed there"
            case .unspecified, .unsupported, .invalidRequest, .noSuchActivity, .ambiguousActivity, .claimHeld,
                .noSuchClaim, .limitExceeded, .timedOut, .cancelled, .peerUnreachable, .refused, .streamsUnsupported,
                .userInfoTooLarge, .documentChanged, .corrupted, .connectionLost, .applicationGone, .nodeStopping,
                .versionUnreadable, .notHandled, .UNRECOGNIZED:
                nil
            }
        return sentence.map { HandoffError(code, $0, device: device) } ?? self
    }

    /// The failure for the continuing device if the origin cannot read the document. The place of the document is for
    /// the origin's user alone.
    static var unreadableAtOrigin: HandoffError {
        HandoffError(.documentUnreadable, "the document can no longer be read on the other device")
    }

    /// The failure of an operation on a document.
    init(documentCause error: any Error) {
        if let error = error as? DocumentError { self.init(error) } else { self.init(wrapping: error) }
    }
}

/// Runs an operation on a document, whose failure becomes that of a handoff.
nonisolated(nonsending) func withHandoffErrors<Value>(
    _ operation: nonisolated(nonsending) () async throws -> Value
) async throws(HandoffError) -> Value {
    do {
        return try await operation()
    } catch {
        throw HandoffError(documentCause: error)
    }
}
