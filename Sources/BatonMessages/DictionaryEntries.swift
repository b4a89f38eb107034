import SwiftProtobuf

extension WireDictionaryValue {
    /// The most bytes of a key, and of a text that is in a set.
    ///
    /// Swift hashes and compares text in its normal form, and bringing a long row of combining marks into it takes time that
    /// grows with the square of its length: 0.47 s for 64 KiB. Of texts of this length a whole message costs milliseconds.
    public static let keyBound = 1024

    /// The entries by their keys.
    ///
    /// Only for what this process has made, or what ``requireCheapKeys()`` has looked at.
    public var entries: [String: WireValue] {
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
    public func requireCheapKeys() throws(HandoffError) {
        try requireKeys(atMost: Self.keyBound)
    }

    /// - Parameter bound: the most bytes of what is hashed; tests of attacks see what the number is good for.
    package func requireKeys(atMost bound: Int) throws(HandoffError) {
        try requireKeys(atMost: bound, isHashed: false)
    }

    fileprivate func requireKeys(atMost bound: Int, isHashed: Bool) throws(HandoffError) {
        for pair in pairs {
            guard pair.key.utf8.count <= bound else { throw .expensive(bound) }
            try pair.value.requireKeys(atMost: bound, isHashed: isHashed)
        }
    }
}

extension WireValue {
    /// - Parameter isHashed: it is in a set.
    fileprivate func requireKeys(atMost bound: Int, isHashed: Bool) throws(HandoffError) {
        switch kind {
        case .string(let text), .url(let text):
            guard !isHashed || text.utf8.count <= bound else { throw .expensive(bound) }
        case .array(let list):
            for element in list.elements { try element.requireKeys(atMost: bound, isHashed: isHashed) }
        case .set(let list):
            for element in list.elements { try element.requireKeys(atMost: bound, isHashed: true) }
        case .dictionary(let dictionary):
            try dictionary.requireKeys(atMost: bound, isHashed: isHashed)
        case .real(let number), .date(let number):
            // One equals nothing, itself included: a set of them compares each with all others.
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

    fileprivate static func expensive(_ bound: Int) -> HandoffError {
        HandoffError(.invalidRequest, "the user info has a key, or a text in a set, of more than \(bound) bytes")
    }
}
