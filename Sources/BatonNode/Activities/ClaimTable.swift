// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonMessages
import BatonProtocol

/// The holds of other devices on this device's activities: a pure value, told the time.
///
/// A claim lasts from the payload until its holder lets it go, or until ``lapse`` after the last connection to that
/// device ended. It keeps its own copy of the activity, so that withdrawing one takes nothing from who accepted it.
struct ClaimTable {
    /// How long a claim outlives the connection of its holder.
    static var lapse: Duration { .seconds(30) }
    /// Claims at once. Each keeps at most one payload of 64 KiB, as it travels, so 8 MiB at the worst; one more is
    /// refused.
    static var bound: Int { 128 }

    /// Claims of one device, so that none uses up those of the others. When it is reached the device's oldest claim
    /// goes: it is one that was forgotten, since no device continues so many activities at once.
    static var boundPerDevice: Int { 32 }

    enum Refusal: Error, Equatable {
        /// An exclusive activity is claimed by this device.
        case held(by: PeerName)
        case tooManyClaims
    }

    /// A claim that went although its holder had said neither that it took the activity over nor that this failed.
    struct Loss {
        let claim: ClaimID
        /// ``Claim/number``.
        let number: UInt64
        let activity: ActivityID
        /// What the activity's application is to be told, with the holder's name.
        let error: HandoffError
    }

    private(set) var claims: [ClaimID: Claim] = [:]
    /// Of which nobody was told yet: no more than there were claims.
    private var losses: [Loss] = []
    private var lastNumber: UInt64 = 0
    private let checks: ClaimChecks
    private let lapse: Duration

    /// - Parameter lapse: how long a claim outlives the connection of its holder.
    init(checks: ClaimChecks = .all, lapse: Duration = Self.lapse) {
        self.checks = checks
        self.lapse = lapse
    }

    /// Who keeps this device from claiming the activity, if it is exclusive.
    func holder(of activityID: ActivityID, otherThan device: PeerName, now: Instant) -> PeerName? {
        claims.values.first { claim in
            claim.activity.id == activityID && claim.device.id != device.id && (claim.lapsesAt.map { $0 > now } ?? true)
        }?.device
    }

    /// Whether any device holds a claim on the activity.
    func isClaimed(_ activityID: ActivityID, now: Instant) -> Bool {
        claims.values.contains { $0.activity.id == activityID && ($0.lapsesAt.map { $0 > now } ?? true) }
    }

    /// Whether a device holds a claim on the activity of which it is not known yet what becomes.
    func isUnsettled(_ activityID: ActivityID, now: Instant) -> Bool {
        claims.values.contains { claim in
            claim.activity.id == activityID && claim.isUnsettled && (claim.lapsesAt.map { $0 > now } ?? true)
        }
    }

    /// Whether a device holds any claim.
    func isHolder(_ device: String, now: Instant) -> Bool {
        claims.values.contains { $0.device.id == device && ($0.lapsesAt.map { $0 > now } ?? true) }
    }

    /// Makes a claim.
    mutating func claim(
        _ activity: OfferedActivity, by device: PeerName, now: Instant
    ) throws(Refusal) -> ClaimID {
        expire(now: now)
        if activity.isExclusive, let holder = holder(of: activity.id, otherThan: device, now: now) {
            throw .held(by: holder)
        }
        let own = claims.filter { $0.value.device.id == device.id }
        if own.count >= Self.boundPerDevice, let oldest = own.min(by: { $0.value.number < $1.value.number }) {
            claims[oldest.key] = nil
            noteLoss(
                oldest.key, oldest.value, .limitExceeded,
                "the device took over more than \(Self.boundPerDevice) activities at once; this was the oldest")
        }
        guard claims.count < Self.bound else { throw .tooManyClaims }
        let id = ClaimID()
        lastNumber += 1
        claims[id] = Claim(activity: activity, device: device, number: lastNumber)
        return id
    }

    /// The claim that a device presents; presenting it ends its lapsing. `nil` where that device holds no such claim.
    mutating func present(_ id: ClaimID, by device: PeerName, now: Instant) -> Claim? {
        expire(now: now)
        guard var claim = claims[id], claim.device.id == device.id || !checks.contains(.holder) else { return nil }
        claim.lapsesAt = nil
        claims[id] = claim
        return claim
    }

    /// Notes that the holder has taken the activity over.
    ///
    /// - Returns: whether that is news.
    @discardableResult
    mutating func setContinued(_ id: ClaimID) -> Bool {
        guard claims[id]?.isContinued != true else { return false }
        claims[id]?.isContinued = true
        return true
    }

    /// Notes that what the holder wanted has failed.
    ///
    /// - Returns: the claim, the first time since it went on; `nil` where that is known already, or the activity was
    ///   taken over before, or the device holds no such claim.
    mutating func setFailed(_ id: ClaimID, by device: PeerName) -> Claim? {
        guard let claim = claims[id], claim.device.id == device.id, claim.isUnsettled else { return nil }
        claims[id]?.hasFailed = true
        return claim
    }

    /// Notes that the transfer to the holder was cut. The holder has ``TransferRetry/patience`` to go on, which is as
    /// long as it tries to.
    ///
    /// - Returns: the claim, the first time since it went on; `nil` where what becomes of it is known.
    mutating func setInterrupted(_ id: ClaimID, by device: PeerName, now: Instant) -> Claim? {
        guard let claim = claims[id], claim.device.id == device.id, claim.isUnsettled, !claim.isInterrupted else {
            return nil
        }
        claims[id]?.isInterrupted = true
        claims[id]?.lapsesAt = now + TransferRetry.patience
        return claim
    }

    /// Notes that the holder goes on with what has failed or was cut: what becomes of it is news again.
    mutating func setGoingOn(_ id: ClaimID) {
        guard claims[id]?.isCancelled == false else { return }
        claims[id]?.hasFailed = false
        claims[id]?.isInterrupted = false
    }

    /// Notes how far the holder is.
    mutating func note(_ report: WireProgressReport, of number: UInt64, now: Instant) {
        guard let id = claims.first(where: { $1.number == number })?.key else { return }
        if claims[id]?.progress?.total == report.total {
            claims[id]?.progress?.update(bytes: report.bytes, now: now)
        } else {
            claims[id]?.progress = TransferProgress(total: report.total, bytes: report.bytes, now: now)
        }
    }

    /// Cancels what the holder is sent. The claim stays for as long as the holder may come back for more.
    ///
    /// - Returns: the claim; nil where nothing is sent any more.
    mutating func cancel(_ id: ClaimID, now: Instant) -> Claim? {
        guard let claim = claims[id], claim.isUnsettled, claim.activity.document != nil else { return nil }
        if claim.lapsesAt != nil { claims[id]?.lapsesAt = now + TransferRetry.patience }
        claims[id]?.hasFailed = true
        claims[id]?.isCancelled = true
        return claim
    }

    /// Notes what the holder is given.
    mutating func setState(_ state: HandedOverState, of id: ClaimID) {
        claims[id]?.activity.document = state.document
        claims[id]?.state = state.number
    }

    /// Notes what the holder was told of the document.
    mutating func setDocument(_ document: ScannedDocument, of id: ClaimID) {
        claims[id]?.document = document
    }

    /// Lets a claim go, and returns it; `nil` where that device holds no such claim.
    @discardableResult
    mutating func release(_ id: ClaimID, by device: PeerName) -> Claim? {
        guard let claim = claims[id], claim.device.id == device.id else { return nil }
        if checks.contains(.release) { claims[id] = nil }
        return claim
    }

    /// The last connection to a device ended: its claims begin to lapse. A device whose transfer was cut or cancelled
    /// may come back for as long as it tries to go on.
    mutating func connectionsEnded(of device: String, now: Instant) {
        for (id, claim) in claims where claim.device.id == device {
            let end = now + (claim.isInterrupted || claim.isCancelled ? TransferRetry.patience : lapse)
            claims[id]?.lapsesAt = min(claim.lapsesAt ?? end, end)
        }
    }

    /// Drops what has lapsed.
    mutating func expire(now: Instant) {
        for (id, claim) in claims where claim.lapsesAt.map({ $0 <= now }) ?? false {
            claims[id] = nil
            noteLoss(
                id, claim, .connectionLost,
                claim.isInterrupted
                    ? "the device did not come back in time; it still goes on by itself if it comes back soon"
                    : "the device was lost before it said that it continues the activity")
        }
    }

    private mutating func noteLoss(
        _ id: ClaimID, _ claim: Claim, _ code: HandoffError.Code, _ message: String
    ) {
        guard claim.isUnsettled else { return }
        losses.append(
            Loss(
                claim: id, number: claim.number, activity: claim.activity.id,
                error: HandoffError(code, message, device: claim.device.name)))
    }

    /// What was lost since this was asked last.
    mutating func takeLosses() -> [Loss] {
        defer { losses = [] }
        return losses
    }
}

/// One device's hold on an activity.
struct Claim: Sendable {
    /// As it was when the device took it over.
    fileprivate(set) var activity: OfferedActivity
    /// The holder.
    let device: PeerName
    /// Rises with every claim that is made, from 1 on: applications are told which one an event is about.
    let number: UInt64
    /// The holder has said that it took the activity over.
    var isContinued = false
    /// Its application was told of a failure, and its holder has not gone on since.
    var hasFailed = false
    /// The transfer to the holder was cut, and the holder has not gone on since.
    var isInterrupted = false
    /// The user of this device has cancelled what the holder is sent.
    fileprivate(set) var isCancelled = false
    /// How far the holder is with the document; nil before it has said so.
    fileprivate(set) var progress: TransferProgress?
    /// Whether it is not known yet what becomes of it.
    var isUnsettled: Bool { !isContinued && !hasFailed }
    /// Whether the holder is not there at the moment.
    var isAway: Bool { lapsesAt != nil }
    /// Its application's number for what it saved for the holder; 0: none.
    fileprivate(set) var state: UInt64 = 0
    /// The document as its holder was told of it, once it asked for the manifest.
    var document: ScannedDocument?
    /// When it lapses; `nil` while a connection to its holder is there.
    var lapsesAt: Instant?
}
