import BatonDocuments
import BatonProtocol

/// The holds of other devices on this device's activities: a pure value, told the time.
///
/// A claim lasts from the payload until its holder lets it go, or until ``lapse`` after the last connection to that
/// device ended. It keeps its own copy of the activity, so that withdrawing one takes nothing from who accepted it.
struct ClaimTable {
    /// How long a claim outlives the connection of its holder.
    static var lapse: Duration { .seconds(30) }
    /// Claims at once. Each keeps at most one payload (64 KiB), so 8 MiB at the worst; one more is refused.
    static var bound: Int { 128 }

    enum Refusal: Error, Equatable {
        /// An exclusive activity is claimed by this device.
        case held(byDevice: String)
        case tooManyClaims
    }

    private(set) var claims: [ClaimID: Claim] = [:]

    /// Who keeps this device from claiming the activity, if it is exclusive.
    func holder(of activityID: ActivityID, otherThan device: String, now: Instant) -> String? {
        claims.values.first { claim in
            claim.activity.id == activityID && claim.device != device && (claim.lapsesAt.map { $0 > now } ?? true)
        }?.device
    }

    /// Makes a claim.
    mutating func claim(
        _ activity: OfferedActivity, by device: String, now: Instant
    ) throws(Refusal) -> ClaimID {
        expire(now: now)
        if activity.isExclusive, let holder = holder(of: activity.id, otherThan: device, now: now) {
            throw .held(byDevice: holder)
        }
        guard claims.count < Self.bound else { throw .tooManyClaims }
        let id = ClaimID()
        claims[id] = Claim(activity: activity, device: device)
        return id
    }

    /// The claim that a device presents; presenting it ends its lapsing. `nil` where that device holds no such claim.
    mutating func present(_ id: ClaimID, by device: String, now: Instant) -> Claim? {
        expire(now: now)
        guard var claim = claims[id], claim.device == device else { return nil }
        claim.lapsesAt = nil
        claims[id] = claim
        return claim
    }

    /// Notes what the holder was told of the document.
    mutating func setDocument(_ document: DocumentSource, of id: ClaimID) {
        claims[id]?.document = document
    }

    /// Lets a claim go; `false` where that device holds no such claim.
    @discardableResult
    mutating func release(_ id: ClaimID, by device: String) -> Bool {
        guard let claim = claims[id], claim.device == device else { return false }
        claims[id] = nil
        return true
    }

    /// The last connection to a device ended: its claims begin to lapse.
    mutating func connectionsEnded(of device: String, now: Instant) {
        for (id, claim) in claims where claim.device == device && claim.lapsesAt == nil {
            claims[id]?.lapsesAt = now + Self.lapse
        }
    }

    /// Drops what has lapsed.
    mutating func expire(now: Instant) {
        claims = claims.filter { $0.value.lapsesAt.map { $0 > now } ?? true }
    }
}

/// One device's hold on an activity.
struct Claim: Sendable {
    /// As it was when the device took it over.
    let activity: OfferedActivity
    /// The identifier of the holder.
    let device: String
    /// The document as its holder was told of it, once it asked for the manifest.
    var document: DocumentSource?
    /// When it lapses; `nil` while a connection to its holder is there.
    var lapsesAt: Instant?
}
