// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonMessages
import Testing

@testable import BatonNode

/// What another device is told of a failure on this one.
@Suite("Failures as other devices are told them")
struct ToldErrorTests {
    /// Those that name the document as the other device does.
    private static let ofDocument: Set<DocumentError.Code> = [
        .sourceChanged, .badRange, .checksumMismatch, .incomplete, .excess, .basisChanged, .badRecord, .busy,
        .cancelled, .systemUnsuitable,
    ]

    @Test("Whatever fails with a document, no place on this device is told", arguments: DocumentError.Code.allCases)
    func places(_ code: DocumentError.Code) {
        let place = "/home/somebody/secret"
        let error = HandoffError(DocumentError(code, place))
        let told = error.withoutPlaces
        #expect(told.code == error.code && !told.message.isEmpty)
        #expect(Self.ofDocument.contains(code) || !told.message.contains(place))
    }
}
