import BatonDocuments
import BatonMessages

extension HandoffError {
    /// What a document's failure is to the handoff that it ends.
    init(_ error: DocumentError) {
        let code: Code =
            switch error.code {
            case .missing, .unreadable, .notRegularFile, .isFolder, .tooManyEntries, .tooDeep: .documentUnreadable
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
        self.init(code, error.message)
    }

    /// What ended something that has to do with a document.
    init(documentCause error: any Error) {
        if let error = error as? DocumentError { self.init(error) } else { self.init(wrapping: error) }
    }
}
