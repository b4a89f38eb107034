import BatonEventLoop
import BatonMessages
import BatonTransport

/// How many continuation streams may be open one way, and how fast new ones follow.
///
/// Each continuation stream costs the connection it is passed on over at most one RESET, and the other side cuts a
/// connection after 128 at once and 32 a second (``BatonProtocol/Limits/resets``). Two ways share a connection.
struct StreamRation: Sendable {
    struct Bound: Sendable {
        /// Streams open, or waiting to be opened, at a time; one more is refused.
        let open: Int
        /// How many are opened without waiting.
        let burst: Int
        /// How many a second are opened for ever.
        let perSecond: Int

        /// To, and from, a device: (32 + 16) * 2 = 96 resets at once and 16 a second at the worst, so that a quarter of
        /// the budget is left to what else the devices do.
        static let device = Bound(open: 32, burst: 16, perSecond: 8)
        /// To an application, of all devices.
        static let toApplication = device
        /// From one application: half of what goes to a device, so that none takes all of it.
        static let fromApplication = Bound(open: 16, burst: 8, perSecond: 4)

        fileprivate var interval: Duration { .seconds(1) / perSecond }
    }

    /// How long an opening is put off, at most; one that would have to wait longer is refused.
    static let longestWait = Duration.seconds(2)

    private let bound: Bound
    private(set) var open = 0
    /// When as many may be opened at once as ever.
    private var full: ContinuousClock.Instant

    init(_ bound: Bound, now: ContinuousClock.Instant) {
        self.bound = bound
        full = now
    }

    /// Takes a place.
    ///
    /// - Returns: how long to wait before it is used; `nil` where there is none.
    mutating func take(now: ContinuousClock.Instant) -> Duration? {
        let later = max(full, now) + bound.interval
        let wait = now.duration(to: later) - bound.interval * bound.burst
        guard open < bound.open, wait <= Self.longestWait else { return nil }
        full = later
        open += 1
        return max(wait, .zero)
    }

    mutating func giveBack() {
        open -= 1
    }

    /// Whether it says no more than a new one would.
    func isUnused(now: ContinuousClock.Instant) -> Bool { open == 0 && full <= now }
}

/// Rations the continuation streams that a node passes on, so that no application can make it reset so many that the
/// other side cuts a connection which others use as well.
final class StreamRations: Sendable {
    /// Over what streams come or go.
    enum Way: Hashable, Sendable {
        /// The device's verified identifier: all connections with it count as one.
        case toDevice(String)
        case fromDevice(String)
        case toApplication(ObjectIdentifier)
        case fromApplication(ObjectIdentifier)

        var bound: StreamRation.Bound {
            switch self {
            case .toDevice, .fromDevice: .device
            case .toApplication: .toApplication
            case .fromApplication: .fromApplication
            }
        }
    }

    /// One for each way that was used lately: no more than the node has connections, and those of the last seconds.
    private let rations = Lock<[Way: StreamRation]>([:])

    /// Takes a place on every way, and waits until it may be used. To be given back by ``giveBack(_:)`` when the stream
    /// has ended, unless this throws.
    ///
    /// - Throws: ``HandoffError``, `limitExceeded` where a way has no place, `cancelled`.
    func take(_ ways: [Way]) async throws(HandoffError) {
        let wait = rations.withLock { rations -> Duration? in
            let now = ContinuousClock.now
            rations = rations.filter { !$0.value.isUnused(now: now) }
            var taken = rations
            var longest = Duration.zero
            for way in ways {
                guard let wait = taken[way, default: StreamRation(way.bound, now: now)].take(now: now) else {
                    return nil
                }
                longest = max(longest, wait)
            }
            rations = taken
            return longest
        }
        guard let wait else {
            throw HandoffError(
                .limitExceeded, "too many continuation streams are open, or were opened just now: try again in a moment"
            )
        }
        guard wait > .zero else { return }
        do {
            try await Task.sleep(for: wait)
        } catch {
            giveBack(ways)
            throw HandoffError(wrapping: error)
        }
    }

    /// The stream has ended.
    func giveBack(_ ways: [Way]) {
        rations.withLock { rations in
            for way in ways { rations[way]?.giveBack() }
        }
    }

    /// Places that are taken on a way.
    func open(_ way: Way) -> Int { rations.withLock { $0[way]?.open ?? 0 } }

    /// Ways that are remembered.
    var count: Int { rations.withLock { $0.count } }
}
