// SPDX-License-Identifier: Apache-2.0

/// A TXT record, and what is said in its place while changes are rationed. One of the two is ever sent.
struct PublishedRecord {
    private let settled: [UInt8]
    private let rationed: [UInt8]
    private var chosen: [UInt8]?

    init(settled: [UInt8], rationed: [UInt8]) {
        self.settled = settled
        self.rationed = rationed
    }

    /// What is sent. The first call decides: whoever has seen the one would take the other for an old record.
    mutating func text(isRationed: Bool) -> [UInt8] {
        let text = chosen ?? (isRationed ? rationed : settled)
        chosen = text
        return text
    }
}
