// SPDX-License-Identifier: Apache-2.0

import BatonCore

/// How traffic, memory and latency grow with the number of devices on one network.
package enum ScaleReport {
    /// Runs a quiet network and a busy one of each size for an hour, after an hour in which all devices come.
    package static func table(of sizes: [Int], seed: UInt64) -> String {
        let rows = sizes.map { devices in row(devices, seed: seed) }
        let head = [
            "devices", "idle", "a change each 10 min", "all come in 1 min", "peak", "records kept", "to all", "99 %",
        ]
        return lines([head] + rows)
    }

    /// Compares the model with the packets that real hosts sent.
    package static func comparison(seed: UInt64) -> String {
        let head = ["captured/modelled", "probes", "questions", "responses", "known answers", "bytes"]
        var table = [head]
        for capture in DiscoveryCapture.all {
            let modelled = capture.modelled(seed: seed)
            for part in DiscoveryCapture.Part.allCases {
                guard let real = capture.parts[part], let model = modelled[part] else { continue }
                let columns: [KeyPath<DiscoveryTraffic, Int>] = [
                    \.probes, \.questions, \.responses, \.knownAnswers, \.bytes,
                ]
                table.append(
                    ["\(capture.devices), \(part)"] + columns.map { "\(real[keyPath: $0])/\(model[keyPath: $0])" })
            }
        }
        return lines(table)
    }

    private static func lines(_ table: [[String]]) -> String {
        let widths = table[0].indices.map { column in table.map { $0[column].count }.max() ?? 0 }
        return table.map { row in
            zip(row, widths).map { String(repeating: " ", count: $1 - $0.count) + $0 }.joined(separator: "  ")
        }.joined(separator: "\n")
    }

    /// Bytes a second on an idle network, an hour after the last device came.
    package static func idleTraffic(of devices: Int, seed: UInt64) -> Double {
        var idle = DiscoveryModel(devices: devices, seed: seed, changes: 0)
        idle.run(until: 7200, countingFrom: 3600)
        return Double(idle.traffic.bytes) / 3600
    }

    private static func row(_ devices: Int, seed: UInt64) -> [String] {
        let idle = idleTraffic(of: devices, seed: seed)
        var busy = DiscoveryModel(devices: devices, seed: seed, changes: 600)
        busy.run(until: 7200, countingFrom: 3600)
        var first = DiscoveryModel(devices: devices, seed: seed, changes: 0)
        first.run(until: 60, countingFrom: 0)
        let sorted = busy.latencies.sorted()
        func latency(_ part: Double) -> String {
            sorted.isEmpty ? "" : "\(Report.number(sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))])) ms"
        }
        func rate(_ bytes: Double, _ seconds: Double) -> String {
            "\(Report.number(bytes / seconds / 1000)) kB/s"
        }
        return [
            "\(devices)", rate(idle, 1), rate(Double(busy.traffic.bytes), 3600), rate(Double(first.traffic.bytes), 60),
            "\(first.peak) packets/s", "\(Report.number(Double(busy.memory) / 1000)) kB", latency(0.5), latency(0.99),
        ]
    }
}
