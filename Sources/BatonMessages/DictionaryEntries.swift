// SPDX-License-Identifier: Apache-2.0

import SwiftProtobuf

extension WireDictionaryValue {
    /// The most bytes of a key, and of a text in a set.
    ///
    /// Swift hashes and compares texts in normal form. For a long row of combining marks the time grows with the square
    /// of the length: 0.47 s for 64 KiB. A whole message of texts of this length costs milliseconds.
    package static let keyBound = 1024

    /// The entries by their keys.
    ///
    /// Use it only for messages of this process, or after ``requireCheapKeys()``.
    package var entries: [String: WireValue] {
        get { Dictionary(pairs.map { ($0.key, $0.value) }, uniquingKeysWith: { $1 }) }
        set {
            let sorted = newValue.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
            pairs = sorted.map { entry in
                .with {
                    $0.key = entry.key
                    $0.value = entry.value
                }
            }
        }
    }

    /// Makes sure that nothing in here is expensive to hash. Costs a look at each value, and hashes nothing.
    ///
    /// - Throws: ``HandoffError`` with `invalidRequest`.
    package func requireCheapKeys() throws(HandoffError) {
        try requireCheap(isHashed: false)
    }

    fileprivate func requireCheap(isHashed: Bool) throws(HandoffError) {
        for pair in pairs {
            guard pair.key.utf8.count <= Self.keyBound else { throw .expensive }
            try pair.value.requireCheap(isHashed: isHashed)
        }
    }
}

extension WireValue {
    /// - Parameter isHashed: it is in a set.
    fileprivate func requireCheap(isHashed: Bool) throws(HandoffError) {
        switch kind {
        case .string(let text), .url(let text):
            guard !isHashed || text.utf8.count <= WireDictionaryValue.keyBound else { throw .expensive }
        case .array(let list):
            for element in list.elements { try element.requireCheap(isHashed: isHashed) }
        case .set(let list):
            for element in list.elements { try element.requireCheap(isHashed: true) }
        case .dictionary(let dictionary):
            try dictionary.requireCheap(isHashed: isHashed)
        case .real(let number), .date(let number):
            // NaN equals nothing, itself included: a set of them compares each with all others.
            guard !isHashed || !number.isNaN else { throw .noNumber }
        case .null, .boolean, .integer, .unsignedInteger, .data, .uuid, nil:
            break
        }
    }
}

extension HandoffError {
    fileprivate static var noNumber: HandoffError {
        HandoffError(.invalidRequest, "the user info has a number in a set that is none (NaN)")
    }

    fileprivate static var expensive: HandoffError {
        HandoffError(
            .invalidRequest,
            "the user info has a key, or a text in a set, of more than \(WireDictionaryValue.keyBound) bytes")
    }
}
