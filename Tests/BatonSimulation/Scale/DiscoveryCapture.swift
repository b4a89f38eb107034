// SPDX-License-Identifier: Apache-2.0

/// What real hosts sent, to hold the model against.
///
/// Captured on 2026-11-28 on the bridges of three labs (`Scripts/lab`) with a socket of AF_PACKET: 4, 12 and 20 network
/// namespaces, each with Avahi 0.8 of Debian 12 and a `baton node` of one account that offers nothing. Each host
/// started its Avahi, and then its node, at a random moment of the first minute.
package struct DiscoveryCapture: Sendable {
    /// A part of a capture, in seconds from its start.
    package enum Part: String, CaseIterable, Sendable {
        /// All devices come.
        case start
        /// Questions become rare. Each node renews its record twice.
        case rest
        /// Each node takes another name.
        case names

        package var seconds: Range<Double> {
            switch self {
            case .start: 0..<120
            case .rest: 180..<780
            case .names: 780..<1200
            }
        }
    }

    package let devices: Int
    package let parts: [Part: DiscoveryTraffic]

    package static let all: [DiscoveryCapture] = [
        DiscoveryCapture(devices: 4, parts: [.start: DiscoveryTraffic(), .rest: DiscoveryTraffic(), .names: DiscoveryTraffic()]),
        DiscoveryCapture(devices: 12, parts: [.start: DiscoveryTraffic(probes: 144, questions: 197, responses: 256, knownAnswers: 1340, bytes: 241358), .rest: DiscoveryTraffic(), .names: DiscoveryTraffic()]),
        DiscoveryCapture(devices: 20, parts: [.start: DiscoveryTraffic(probes: 240, questions: 349, responses: 524, knownAnswers: 3232, bytes: 502355), .rest: DiscoveryTraffic(), .names: DiscoveryTraffic()]),
        ]

    /// What the model says instead, at the average of some seeds.
    package func modelled(seed: UInt64, seeds: Int = 10) -> [Part: DiscoveryTraffic] {
        var sums: [Part: DiscoveryTraffic] = [:]
        for number in 0..<UInt64(seeds) {
            var model = DiscoveryModel(devices: devices, seed: seed &+ number, changes: 0)
            for part in Part.allCases {
                model.run(until: part.seconds.upperBound, countingFrom: part.seconds.lowerBound)
                sums[part, default: DiscoveryTraffic()] += model.traffic
            }
        }
        return sums.mapValues { $0 / seeds }
    }
}
