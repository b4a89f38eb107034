public import BatonProtocol

/// What a transfer waits for most: the stage that took the most of the last two seconds.
///
/// A pure value: time comes in with every call, on a monotonic clock. What a stage took counts for 1/e after
/// ``memory``.
public struct BottleneckMeter: Sendable, Hashable {
    /// The time after which what a stage took counts for 1/e: 2 s.
    public static let memory: Duration = .seconds(2)
    /// Nothing is named before so much time was measured: 100 ms.
    public static let warmUp: Duration = .milliseconds(100)

    private var link = 0.0
    private var disk = 0.0
    private var processor = 0.0
    private var last: Instant

    /// A meter that begins now.
    public init(now: Instant) {
        last = now
    }

    /// Takes note that a stage took so long, until now.
    public mutating func add(_ stage: Bottleneck, _ duration: Duration, now: Instant) {
        let elapsed = now > last ? (now - last).seconds : 0
        last = max(last, now)
        // Of the exponential function this is near enough, and needs no library.
        let kept = 1 / (1 + elapsed / Self.memory.seconds)
        link *= kept
        disk *= kept
        processor *= kept
        switch stage {
        case .unknown: break
        case .link: link += duration.seconds
        case .disk: disk += duration.seconds
        case .processor: processor += duration.seconds
        }
    }

    /// What took the most.
    public var bottleneck: Bottleneck {
        guard link + disk + processor >= Self.warmUp.seconds else { return .unknown }
        if link >= disk, link >= processor { return .link }
        return disk >= processor ? .disk : .processor
    }
}

extension Duration {
    fileprivate var seconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
