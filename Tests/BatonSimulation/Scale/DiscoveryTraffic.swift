// SPDX-License-Identifier: Apache-2.0

/// Packets of multicast DNS on one network, counted over IPv4 and IPv6 together.
package struct DiscoveryTraffic: Sendable {
    /// The purpose of a packet.
    enum Kind {
        /// It asks whether a name is free.
        case probe
        case question
        /// An announcement, an answer or a goodbye.
        case response
    }

    package var probes = 0
    package var questions = 0
    package var responses = 0
    /// Records in questions that need no answer.
    package var knownAnswers = 0
    /// With the headers of Ethernet, IP and UDP.
    package var bytes = 0

    package init(probes: Int = 0, questions: Int = 0, responses: Int = 0, knownAnswers: Int = 0, bytes: Int = 0) {
        self.probes = probes
        self.questions = questions
        self.responses = responses
        self.knownAnswers = knownAnswers
        self.bytes = bytes
    }

    package var packets: Int { probes + questions + responses }

    mutating func count(_ kind: Kind, bytes size: Int) {
        bytes += size
        switch kind {
        case .probe: probes += 1
        case .question: questions += 1
        case .response: responses += 1
        }
    }

    static func += (left: inout Self, right: Self) {
        left.probes += right.probes
        left.questions += right.questions
        left.responses += right.responses
        left.knownAnswers += right.knownAnswers
        left.bytes += right.bytes
    }

    static func / (left: Self, count: Int) -> Self {
        Self(
            probes: left.probes / count, questions: left.questions / count, responses: left.responses / count,
            knownAnswers: left.knownAnswers / count, bytes: left.bytes / count)
    }
}
