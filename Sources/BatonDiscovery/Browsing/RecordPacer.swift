/// Decides when the records of one instance are told that change again and again. A value without a clock.
///
/// Anybody on the link can put a record under the name of an instance that is heard, and thousands a second, of which each
/// costs the owner a decryption with every key that it has: up to 2 ms. So the first change after quiet is told at once, and
/// of those that follow it closely the latest, when it is time. A device itself changes its record five times in a row, and
/// then once in 6 s (``UpdatePacer``).
///
/// Times are durations since any fixed moment, and must not go back.
struct RecordPacer {
    /// The time between two records that are told.
    static let spacing: Duration = .milliseconds(100)

    private let spacing: Duration
    private var lastTold: Duration?
    /// Whether a change waits.
    private(set) var isWaiting = false

    init(spacing: Duration = spacing) {
        self.spacing = spacing
    }

    /// There is another record.
    mutating func change() {
        isWaiting = true
    }

    /// When what waits may be told; nil when nothing waits. A time that has passed is now.
    func deadline() -> Duration? {
        isWaiting ? lastTold.map { $0 + spacing } ?? .zero : nil
    }

    /// Whether something waits and may be told now; the caller then tells the latest record.
    mutating func takeIfDue(now: Duration) -> Bool {
        guard let due = deadline(), due <= now else { return false }
        lastTold = now
        isWaiting = false
        return true
    }
}
