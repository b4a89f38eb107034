// SPDX-License-Identifier: Apache-2.0

/// The packets that real hosts sent. The model is held against them.
///
/// They were captured on 2026-11-28 with a socket of AF_PACKET, on the bridges of three labs (`Scripts/lab`) of 4, 12
/// and 20 hosts. Each host was a network namespace with Avahi 0.8 of Debian 12 and a `baton node`. All nodes of a lab
/// had one account, and none offered anything. Each host started its Avahi, and then its node, at a random moment of
/// the first minute.
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

    package static let all = [
        DiscoveryCapture(
            devices: 4,
            parts: [
                .start: DiscoveryTraffic(probes: 48, questions: 67, responses: 64, knownAnswers: 162, bytes: 59_310),
                .rest: DiscoveryTraffic(probes: 0, questions: 16, responses: 48, knownAnswers: 64, bytes: 32_496),
                .names: DiscoveryTraffic(probes: 24, questions: 8, responses: 50, knownAnswers: 32, bytes: 50_176),
            ]),
        DiscoveryCapture(
            devices: 12,
            parts: [
                .start: DiscoveryTraffic(
                    probes: 144, questions: 197, responses: 256, knownAnswers: 1340, bytes: 241_358),
                .rest: DiscoveryTraffic(probes: 0, questions: 48, responses: 144, knownAnswers: 576, bytes: 107_856),
                .names: DiscoveryTraffic(probes: 72, questions: 24, responses: 166, knownAnswers: 288, bytes: 165_430),
            ]),
        DiscoveryCapture(
            devices: 20,
            parts: [
                .start: DiscoveryTraffic(
                    probes: 240, questions: 362, responses: 524, knownAnswers: 3492, bytes: 510_496),
                .rest: DiscoveryTraffic(probes: 0, questions: 94, responses: 240, knownAnswers: 1880, bytes: 205_818),
                .names: DiscoveryTraffic(probes: 120, questions: 40, responses: 274, knownAnswers: 800, bytes: 281_442),
            ]),
    ]

    /// The same parts as the model has them: the average of ten seeds.
    package func modelled(seed: UInt64) -> [Part: DiscoveryTraffic] {
        let seeds = 10
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
