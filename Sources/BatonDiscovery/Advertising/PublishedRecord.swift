// SPDX-License-Identifier: Apache-2.0

/// A TXT record, and the one that takes its place while changes are rationed. Only one of the two is ever sent.
struct PublishedRecord {
    private let settled: [UInt8]
    private let rationed: [UInt8]
    private var chosen: [UInt8]?

    init(settled: [UInt8], rationed: [UInt8]) {
        self.settled = settled
        self.rationed = rationed
    }

    /// Returns the text to send. The first call decides, because a device that saw one would take the other for old.
    mutating func text(isRationed: Bool) -> [UInt8] {
        let text = chosen ?? (isRationed ? rationed : settled)
        chosen = text
        return text
    }
}
