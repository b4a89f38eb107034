// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// The bottleneck of a transfer: the stage that took most of the last two seconds.
///
/// A pure value: time comes in with every call, on a monotonic clock. The time of a stage counts for 1/e after
/// ``memory``. A stage that hangs counts while it lasts, from ``patience`` on.
package struct BottleneckMeter: Sendable {
    /// The time after which what a stage took counts for 1/e: 2 s.
    package static let memory: Duration = .seconds(2)
    /// Nothing is named before so much time was measured: 100 ms.
    package static let warmUp: Duration = .milliseconds(100)
    /// A stage that lasts for less time counts when it has ended: 1 s.
    package static let patience: Duration = .seconds(1)

    private var link = 0.0
    private var disk = 0.0
    private var processor = 0.0
    private var last: Instant
    private var current: (stage: Bottleneck, start: Instant)?

    package init(now: Instant) {
        last = now
    }

    /// Takes note that a stage took so long, until now.
    package mutating func add(_ stage: Bottleneck, _ duration: Duration, now: Instant) {
        let elapsed = now > last ? (now - last).inSeconds : 0
        last = max(last, now)
        // Of the exponential function this is near enough, and needs no library.
        let kept = 1 / (1 + elapsed / Self.memory.inSeconds)
        link *= kept
        disk *= kept
        processor *= kept
        switch stage {
        case .unknown: break
        case .link: link += duration.inSeconds
        case .disk: disk += duration.inSeconds
        case .processor: processor += duration.inSeconds
        }
    }

    /// A stage begins now, and the one before has ended: what that took is told by ``add(_:_:now:)``.
    package mutating func begin(_ stage: Bottleneck, now: Instant) {
        current = (stage, now)
    }

    /// The stage that took most until now.
    package func bottleneck(now: Instant) -> Bottleneck {
        guard let current, now - current.start >= Self.patience else { return most }
        var meter = self
        meter.add(current.stage, now - current.start, now: now)
        return meter.most
    }

    private var most: Bottleneck {
        guard link + disk + processor >= Self.warmUp.inSeconds else { return .unknown }
        if link >= disk, link >= processor { return .link }
        return disk >= processor ? .disk : .processor
    }
}
