// SPDX-License-Identifier: Apache-2.0

/// The results of runs, as a person reads them.
package enum Report {
    package static func text(_ total: Statistics, runs: Int, devices: Int, taken: Duration) -> String {
        let (seconds, simulated) = (taken / .seconds(1), total.simulated / .seconds(1))
        let failures = total.failed.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            .map { "\($0.value) × “\($0.key)”" }.joined(separator: ", ")
        let perDevice = 1 / (simulated * Double(devices))
        return """
            \(runs) runs, \(number(simulated / 3600)) simulated hours, \(total.events) events, \(total.crashes) crashes, \
            \(total.cuts) connections cut
            \(total.handoffs) handoffs in \(number(seconds)) s: \(Int(Double(total.handoffs) / seconds * 60)) a minute
            \(total.continued) continued; failed: \(failures.isEmpty ? "none" : failures)
            traffic of a device: \(number(Double(total.messages) * perDevice)) messages a second, \
            \(number(Double(total.bytes) * perDevice)) bytes a second, \
            \(number(Double(total.announcements) * perDevice * 60)) announcements a minute
            at most on one device: \(total.mostClaims) claims, \(total.mostHandoffs) handoffs, \
            \(total.mostRecords) devices known
            from accept to continued: \(distribution(total.latencies))
            from offer to listed:     \(distribution(total.listings))
            """
    }

    /// The distribution of times in milliseconds.
    package static func distribution(_ values: [Double]) -> String {
        guard !values.isEmpty else { return "none" }
        let sorted = values.sorted()
        return [("median", 0.5), ("90 %", 0.9), ("99 %", 0.99), ("most", 1)].map { name, part in
            "\(name) \(number(sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))])) ms"
        }.joined(separator: ", ")
    }

    /// A number with three significant digits.
    package static func number(_ value: Double) -> String {
        let digits = value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3
        let scale = [1.0, 10, 100, 1000][digits]
        let rounded = Int64((value * scale).rounded())
        guard digits > 0 else { return "\(rounded)" }
        let fraction = String(Int64(scale) + rounded % Int64(scale)).dropFirst()
        return "\(rounded / Int64(scale)).\(fraction)"
    }
}
