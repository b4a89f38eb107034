// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonMessages
import Testing

@testable import BatonNode

/// The errors that another device is told when something fails on this one.
@Suite("Failures as other devices are told them")
struct ToldErrorTests {
    /// The errors that name the document as the other device does.
    private static let ofDocument: Set<DocumentError.Code> = [
        .sourceChanged, .badRange, .checksumMismatch, .incomplete, .excess, .basisChanged, .badRecord, .busy,
        .cancelled, .systemUnsuitable,
    ]

    @Test("No failure of a document tells a place on this device", arguments: DocumentError.Code.allCases)
    func places(_ code: DocumentError.Code) {
        let place = "/home/somebody/secret"
        let error = HandoffError(DocumentError(code, place))
        let told = error.withoutPlaces
        #expect(told.code == error.code && !told.message.isEmpty)
        #expect(Self.ofDocument.contains(code) || !told.message.contains(place))
    }
}
