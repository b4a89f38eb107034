import BatonEventLoop
import BatonProtocol

/// What the peers of all connections together may make this process hold: 64 MiB, whatever the number of connections.
///
/// Credit is a promise that cannot be taken back, so it is what counts here, and not what has come: the sum of the
/// connections' greatest windows never exceeds the budget. Each connection has a floor of its own, which keeps it going
/// however many there are; when its peer is known it gets, above the floor, half of what is left, up to the most that a
/// window may grow to, and keeps that until it is gone. The first has the whole window (16 MiB), the second 13, and
/// from the sixth on they come near the floor: 512 KiB are still more than a link of 100 MB/s at 5 ms has under way.
/// Strangers, whose handshake does not succeed, get no share.
///
/// Safe to use from any thread.
public final class ReceiveBudget: Sendable {
    /// Bytes that may be promised in all: 64 MiB by default.
    public static let defaultBytes = 64 << 20
    /// Bytes that every connection may hold: 512 KiB by default.
    public static let defaultFloor = 512 << 10

    /// Bytes that may be promised in all.
    public let bytes: Int
    /// Bytes that every connection may hold, also before its peer is known.
    public let floor: Int
    /// The connection window, in bytes, that a share begins with, if it is as large.
    let initialWindow: Int

    private let maximumWindow: Int
    /// What is left above the floors.
    private let pool: Lock<Int>

    /// - Parameters:
    ///   - bytes: what may be promised in all: the floors of all connections have to fit.
    ///   - connections: the most that there are at once, those in their handshake included. Their owner sees to that.
    ///   - floor: what each has without a share.
    ///   - initialWindow: what a connection's window begins with, where its share allows it.
    ///   - maximumWindow: the greatest share.
    public init(
        bytes: Int = defaultBytes, connections: Int, floor: Int = defaultFloor, initialWindow: Int, maximumWindow: Int
    ) {
        precondition(floor > 0 && connections > 0 && connections * floor <= bytes, "the floors fit the budget")
        self.bytes = bytes
        self.floor = floor
        self.initialWindow = initialWindow
        self.maximumWindow = maximumWindow
        pool = Lock(bytes - connections * floor)
    }

    /// Bytes that are left above the floors of all connections.
    var available: Int { pool.withLock { $0 } }

    /// The limits of a connection whose peer is not known yet.
    func limitingToFloor(_ limits: Limits) -> Limits {
        var limits = limits
        limits.initialConnectionWindow = min(limits.initialConnectionWindow, floor)
        limits.maximumConnectionWindow = limits.initialConnectionWindow
        return limits
    }

    /// A connection's share: its floor and half of what is left. It goes back with the last reference.
    func share() -> ReceiveShare {
        let most = max(0, maximumWindow - floor)
        let extra = pool.withLock { left in
            let extra = min(most, left / 2)
            left -= extra
            return extra
        }
        return ReceiveShare(bytes: floor + extra, of: self)
    }

    fileprivate func giveBack(_ extra: Int) {
        pool.withLock { $0 += extra }
    }
}

/// What one connection may hold of what its peer sends.
final class ReceiveShare: Sendable {
    /// The floor of every connection included.
    let bytes: Int
    private let budget: ReceiveBudget

    fileprivate init(bytes: Int, of budget: ReceiveBudget) {
        self.bytes = bytes
        self.budget = budget
    }

    deinit {
        budget.giveBack(bytes - budget.floor)
    }
}
