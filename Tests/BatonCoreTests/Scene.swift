// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonProtocol

/// A world whose contents are texts and numbers.
enum TestWorld: World {
    typealias Activity = TestActivity
    typealias Application = Int
    typealias Kept = String
    typealias Progress = Int
    typealias Failure = TestFailure

    static func keep(_ activity: TestActivity) -> String { activity.summary }
    static func note(_ progress: Int, in kept: inout String) {}
    static func failure(_ refusal: Refusal) -> TestFailure {
        TestFailure(text: "\(refusal)", setback: refusal == .noSuchClaim ? .unclaimed : .final)
    }
    static func setback(of failure: TestFailure) -> Setback { failure.setback }
}

struct TestActivity: OfferedContent {
    let id: ActivityID
    var application = ""
    var isExclusive = false
    var needsSave = false
    /// On the test's clock.
    var expires: Double?

    var summary: String { "activity \(id.shortName)" }
    var payload: String { summary }
}

struct TestFailure: Error, Hashable, CustomStringConvertible {
    let text: String
    var setback = Setback.final
    var description: String { text }
}

/// An order of the core, in words that a test can compare.
typealias Line = String

/// A core with a clock of its own. It carries out what needs no answer, and keeps what the core says.
struct Scene {
    var core = OwnActivities<TestWorld>(bound: 8, lease: ClaimBounds.lease)
    /// Since the beginning, on both clocks.
    private(set) var elapsed = Duration.zero
    /// All orders, the oldest first.
    var said: [Line] = []
    /// Questions to applications that have no answer.
    var questions: [OfferID] = []
    /// The answers to devices.
    var given: [ClaimID: String] = [:]
    private var lastName: UInt64 = 0

    var now: Moment {
        Moment(instant: Instant(nanoseconds: 1_000_000_000) + elapsed, unixTime: 1_000_000 + time)
    }

    /// Seconds since the beginning.
    var time: Double { elapsed / .seconds(1) }

    /// An identifier that no other has.
    mutating func fresh<Subject>(_: Identifier<Subject>.Type = Identifier<Subject>.self) -> Identifier<Subject> {
        lastName += 1
        return name(lastName)
    }

    mutating func offer(
        _ activity: ActivityID, from application: Int = 1, exclusively: Bool = false, saving: Bool = false,
        until expires: Double? = nil
    ) throws(TestFailure) -> OfferID {
        let id = fresh(OfferID.self)
        let offered = TestActivity(
            id: activity, isExclusive: exclusively, needsSave: saving, expires: expires.map { 1_000_000 + $0 })
        if let failure = decide({ $0.offer(offered, from: application, as: id) }) { throw failure }
        return id
    }

    mutating func claim(_ activity: ActivityID, by device: PeerName) -> ClaimID {
        let id = fresh(ClaimID.self)
        decide { $0.claim(activity, as: id, by: device) }
        return id
    }

    @discardableResult
    mutating func decide<Value>(_ body: (inout OwnActivities<TestWorld>) -> Value) -> Value {
        core.advance(to: now)
        let value = body(&core)
        for effect in core.takeEffects() { carryOut(effect) }
        return value
    }

    /// Lets time pass, and wakes the core at each of its deadlines.
    mutating func wait(_ seconds: Double) {
        let end = elapsed + .seconds(seconds)
        decide { _ in }
        while let next = core.nextDeadline, next <= now.instant + (end - elapsed) {
            elapsed += max(.zero, next - now.instant)
            decide { _ in }
        }
        elapsed = end
        decide { _ in }
    }

    /// The application answers the question about an offer, if it was asked one.
    mutating func answer(_ offer: OfferID, _ answer: Result<String, TestFailure>) {
        guard let index = questions.firstIndex(of: offer) else { return }
        questions.remove(at: index)
        decide { $0.saved(offer, answer.map { ($0, $0) }) }
    }

    private mutating func carryOut(_ effect: OwnActivities<TestWorld>.Effect) {
        switch effect {
        case .changed: said.append("changed")
        case .tell(let offer, let told, let claim):
            said.append("\(offer.shortName): \(told.words(claim)) (\(claim?.number ?? 0))")
        case .endEvents(let offer): said.append("\(offer.shortName): end")
        case .askToSave(let offer, let device):
            said.append("save \(offer.activity.id.shortName) for \(device.name)")
            questions.append(offer.id)
        case .answer(let claim, .success(let payload)): given[claim] = payload
        case .answer(let claim, .failure(let failure)): given[claim] = failure.text
        case .graceEnded: said.append("replaced")
        }
    }
}

extension Told<TestWorld> {
    func words(_ claim: Claim<TestWorld>?) -> String {
        let device = claim?.device.name ?? "nobody"
        return switch self {
        case .taken: "taken by \(device)"
        case .progress(let bytes): "\(bytes)"
        case .interrupted(let failure): "\(device) is cut: \(failure.text)"
        case .continued: "\(device) has \(claim?.kept ?? "nothing")"
        case .failed(let failure): "\(device) has it not: \(failure.text)"
        case .withdrawn: "withdrawn"
        }
    }
}

extension Identifier {
    var shortName: Int { Int(bytes[0]) << 8 | Int(bytes[1]) }
}

/// The identifier of a number.
func name<Subject>(_ number: UInt64) -> Identifier<Subject> {
    let bytes = [UInt8(truncatingIfNeeded: number >> 8), UInt8(truncatingIfNeeded: number)]
    guard let name = Identifier<Subject>(bytes + Array(repeating: 0, count: 14)) else {
        preconditionFailure("an identifier has \(Identifier<Subject>.size) bytes")
    }
    return name
}

extension PeerName: ExpressibleByStringLiteral {
    package init(stringLiteral id: String) {
        self.init(id: id, name: id)
    }
}
