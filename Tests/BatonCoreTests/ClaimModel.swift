// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

@testable import BatonCore

/// An origin that offers one exclusive activity, devices that take it over, and the messages between them: a value, of
/// which each action makes another one.
struct ClaimModel {
    /// What may happen next.
    enum Action: Hashable {
        /// The user of a device accepts the activity.
        case accept(Int)
        /// A message arrives.
        case deliver(Message)
        /// A device ends a step that takes time: it fetches a document, gives it to an application, or pauses.
        case work(Int)
        // The next cases cost one of the faults.
        case lose(Message)
        /// A device no longer waits for an answer. The message may still arrive.
        case timeOut(Message)
        case cutDocument(Int)
        case cancel(Int)
        case crash(Int)
        case crashOrigin
        case withdraw
        /// The origin sees the end of its connections to a device.
        case disconnect(Int)
        /// More than the lease passes.
        case wait

        var isFault: Bool {
            switch self {
            case .accept, .deliver, .work: false
            case .lose, .timeOut, .cutDocument, .cancel, .crash, .crashOrigin, .withdraw, .disconnect, .wait: true
            }
        }
    }

    struct Message: Hashable {
        enum Content: Hashable {
            case claim
            case present(ClaimID)
            case commit(ClaimID)
            case release(ClaimID)
            /// - Parameter claim: what was asked for, as far as it was given.
            case answer(claim: ClaimID?, failure: TestFailure?)
        }

        let device: Int
        var content: Content
        /// Whether the device waits for the answer.
        var isAwaited = true
    }

    /// The task of a device.
    enum Work: Hashable {
        case nothing, answer, fetching, delivering, pausing
        /// The origin is asked for a new claim instead of the one that it forgot.
        case renewing
    }

    struct Device {
        var core = Handoffs<TestWorld>()
        var work = Work.nothing
        var claim: ClaimID?
        /// How often its user may accept the activity yet.
        var accepts: Int
        /// Whether a handoff has begun that has not ended.
        var isOpen = false
        /// How often it has continued the activity.
        var continuations = 0
    }

    private var now = Instant(nanoseconds: 1_000_000_000)
    private var origin = OwnActivities<TestWorld>(bound: 1, lease: ClaimBounds.lease)
    private var isOriginUp = true
    private(set) var devices: [Device]
    private var network: [Message] = []
    private let hasDocument: Bool
    private(set) var faults: Int
    private var lastName: UInt64 = 0
    /// The outcomes that the origin's application heard for each claim.
    private var told: [UInt64: [String]] = [:]
    private var isQuiet: Bool { network.isEmpty && devices.allSatisfy { $0.work == .nothing } }
    private var commits: Int { told.values.joined().count { $0 == "continued" } }
    /// A broken invariant.
    private(set) var violation: String?

    private static let activity: ActivityID = name(1)
    private static let names: [PeerName] = ["a", "b", "c"]

    init(devices count: Int, accepts: Int, faults: Int, hasDocument: Bool) {
        devices = (0..<count).map { _ in Device(accepts: accepts) }
        self.faults = faults
        self.hasDocument = hasDocument
        let activity = TestActivity(id: Self.activity, isExclusive: true)
        _ = origin.offer(activity, from: 1, as: name(1))
        _ = origin.takeEffects()
    }

    // MARK: Actions

    var actions: [Action] {
        var actions: [Action] = network.map { .deliver($0) }
        for (number, device) in devices.enumerated() {
            if device.core.isIdle, device.accepts > 0 { actions.append(.accept(number)) }
            if device.work != .nothing, device.work != .answer, device.work != .renewing {
                actions.append(.work(number))
            }
        }
        guard faults > 0 else { return actions }
        for message in network {
            actions.append(.lose(message))
            if message.isAwaited { actions.append(.timeOut(message)) }
        }
        for (number, device) in devices.enumerated() where !device.core.isIdle {
            actions += [.cancel(number), .crash(number)]
            if device.work == .fetching { actions.append(.cutDocument(number)) }
            if origin.holdsClaim(Self.names[number].id) { actions.append(.disconnect(number)) }
        }
        if isOriginUp { actions += [.crashOrigin, .withdraw] }
        return actions + [.wait]
    }

    func after(_ action: Action) -> ClaimModel {
        var next = self
        if action.isFault { next.faults -= 1 }
        next.act(action)
        next.check()
        return next
    }

    private mutating func act(_ action: Action) {
        let away = TestFailure(text: "no answer", setback: .away)
        switch action {
        case .accept(let number):
            devices[number].accepts -= 1
            devices[number].isOpen = true
            lastName += 1
            let id: HandoffID = name(lastName)
            decide(number) { core in
                _ = core.accept(HandoffAsk(origin: "origin", activity: Self.activity), as: id)
                core.begin(id)
            }
        case .deliver(let message):
            take(message)
            arrive(message)
        case .work(let number):
            switch devices[number].work {
            case .delivering: end(number, .delivered(to: nil))
            default: end(number, .done)
            }
        case .lose(let message):
            take(message)
            if message.isAwaited { fail(message.device, away) }
        case .timeOut(let message):
            take(message)
            network.append(Message(device: message.device, content: message.content, isAwaited: false))
            fail(message.device, away)
        case .cutDocument(let number):
            end(number, .cut(TestFailure(text: "cut", setback: .lost), TransferRetry.Attempt(bytes: 1)))
        case .cancel(let number): decide(number) { $0.cancelAll(because: TestFailure(text: "cancelled")) }
        case .crash(let number):
            // Its user may accept the activity again after a restart.
            let (accepts, continuations) = (devices[number].accepts, devices[number].continuations)
            devices[number] = Device(accepts: accepts, continuations: continuations)
            for index in network.indices where network[index].device == number { network[index].isAwaited = false }
        case .crashOrigin:
            isOriginUp = false
            origin = OwnActivities(bound: 1, lease: ClaimBounds.lease)
        case .withdraw: decideAtOrigin { $0.withdraw(name(1)) }
        case .disconnect(let number): decideAtOrigin { $0.connectionEnded(of: Self.names[number]) }
        case .wait: pass(.seconds(31))
        }
    }

    private mutating func pass(_ time: Duration) {
        now = now + time
        decideAtOrigin { _ in }
        for number in devices.indices { decide(number) { _ in } }
    }

    private mutating func take(_ message: Message) {
        if let index = network.firstIndex(of: message) { network.remove(at: index) }
    }

    private mutating func arrive(_ message: Message) {
        let device = Self.names[message.device]
        var reply = message
        switch message.content {
        case .claim:
            lastName += 1
            let id: ClaimID = name(lastName)
            // The application is not asked to save, so the answer comes at once.
            var answer: Result<String, TestFailure>?
            decideAtOrigin({ $0.claim(Self.activity, as: id, by: device) }, answering: { answer = $0 })
            if case .failure(let failure)? = answer {
                reply.content = .answer(claim: nil, failure: failure)
            } else {
                reply.content = .answer(claim: id, failure: nil)
            }
        case .present(let id):
            var answer: Result<Claim<TestWorld>, TestFailure>?
            decideAtOrigin { answer = $0.present(id, by: device) }
            reply.content = .answer(claim: id, failure: answer?.failure)
        case .commit(let id):
            var answer: Result<Void, TestFailure>?
            decideAtOrigin { answer = $0.setContinued(id, by: device) }
            reply.content = .answer(claim: id, failure: answer?.failure)
        case .release(let id):
            decideAtOrigin { $0.release(id, by: device) }
            reply.content = .answer(claim: id, failure: nil)
        case .answer(let claim, let failure):
            if message.isAwaited { heard(message.device, claim, failure) }
            return
        }
        // An answer that nobody waits for goes nowhere. The origin releases such a claim with its lease.
        if message.isAwaited { network.append(reply) }
    }

    // MARK: Devices

    private mutating func heard(_ number: Int, _ claim: ClaimID?, _ failure: TestFailure?) {
        if let failure { return fail(number, failure) }
        devices[number].claim = claim
        end(number, .done)
    }

    private mutating func fail(_ number: Int, _ failure: TestFailure) {
        if devices[number].work == .renewing, failure.setback == .unclaimed {
            devices[number].work = .answer
            return network.append(Message(device: number, content: .claim))
        }
        end(number, .failed(failure))
    }

    private mutating func end(_ number: Int, _ outcome: Handoffs<TestWorld>.Outcome) {
        devices[number].work = .nothing
        for id in devices[number].core.ids { decide(number) { $0.performed(id, outcome) } }
    }

    private mutating func decide(_ number: Int, _ event: (inout Handoffs<TestWorld>) -> Void) {
        devices[number].core.advance(to: now)
        event(&devices[number].core)
        for effect in devices[number].core.takeEffects() { carryOut(effect, at: number) }
    }

    private mutating func carryOut(_ effect: Handoffs<TestWorld>.Effect, at number: Int) {
        switch effect {
        case .paused, .ended: break
        case .continued:
            devices[number].continuations += 1
            closed(number)
        case .interrupt:
            for index in network.indices where network[index].device == number { network[index].isAwaited = false }
            end(number, .failed(TestFailure(text: "interrupted")))
        case .perform(_, let step): perform(step, at: number)
        }
    }

    private mutating func perform(_ step: Handoffs<TestWorld>.Step, at number: Int) {
        func ask(_ content: Message.Content, as work: Work = .answer) {
            devices[number].work = work
            network.append(Message(device: number, content: content))
        }
        let claim = devices[number].claim
        switch step {
        case .announce, .hold: end(number, .done)
        case .claim: ask(.claim)
        case .prepare: end(number, .prepared(hasDocument ? [.exclusive, .document] : .exclusive))
        case .fetch: devices[number].work = .fetching
        case .wait(let pause, _):
            devices[number].work = .pausing
            pass(pause)
        case .deliver: devices[number].work = .delivering
        case .renew: if let claim { ask(.present(claim), as: .renewing) }
        case .commit: if let claim { ask(.commit(claim)) }
        case .fail:
            closed(number)
            end(number, .done)
        case .release:
            devices[number].claim = nil
            if let claim { ask(.release(claim)) } else { end(number, .done) }
        }
    }

    /// A handoff has ended.
    private mutating func closed(_ number: Int) {
        if !devices[number].isOpen { violation = "a handoff has two ends" }
        devices[number].isOpen = false
    }

    // MARK: The origin

    private mutating func decideAtOrigin(
        _ event: (inout OwnActivities<TestWorld>) -> Void,
        answering answer: (Result<String, TestFailure>) -> Void = { _ in }
    ) {
        origin.advance(to: Moment(instant: now, unixTime: 0))
        event(&origin)
        for effect in origin.takeEffects() {
            switch effect {
            case .tell(_, .continued, let claim?): told[claim.number, default: []].append("continued")
            case .tell(_, .failed, let claim?): told[claim.number, default: []].append("failed")
            case .answer(_, let result): answer(result)
            case .tell, .changed, .endEvents, .askToSave, .graceEnded: break
            }
        }
    }

    // MARK: Invariants

    private mutating func check() {
        let continued = devices.map(\.continuations).reduce(0, +)
        if continued > 1 || commits > 1 { violation = "\(continued) holders, \(commits) commits" }
        if continued > commits { violation = "a device has what the origin did not commit" }
        if told.values.contains(where: { $0.count > 1 }) { violation = "the origin said two ends: \(told)" }
        guard isQuiet else { return }
        if devices.contains(where: { $0.isOpen || !$0.core.isIdle }) { violation = "a handoff waits for ever" }
        // When all devices are gone, no claim stays, and the origin has said what became of each.
        var rest = self
        for device in Self.names { rest.decideAtOrigin { $0.connectionEnded(of: device) } }
        rest.pass(.seconds(700))
        if !rest.origin.claims.isEmpty { violation = "a claim stays" }
    }

    /// Everything that the future depends on. Two states with the same key have the same future.
    var key: String {
        var key = "\(faults) \(isOriginUp) \(commits)"
        for offer in origin.offers { key += " o\(offer.stage)" }
        for claim in origin.claims {
            key += " c\(claim.id.shortName)\(claim.device.id)\(claim.state)\(claim.awayUntil.map { $0 - now } ?? .zero)"
        }
        for device in devices {
            key += " d\(device.work) \(device.claim?.shortName ?? 0) \(device.accepts) \(device.isOpen)"
            key += " \(device.continuations)"
            for id in device.core.ids { key += device.core[id]?.key(at: now) ?? "" }
        }
        key += network.map { "\($0.device)\($0.isAwaited)\($0.content.key)" }.sorted().joined(separator: " ")
        return key
    }
}

extension Result {
    fileprivate var failure: Failure? { if case .failure(let failure) = self { failure } else { nil } }
}

extension ClaimModel.Message.Content {
    fileprivate var key: String {
        switch self {
        case .claim: "claim"
        case .present(let id): "present\(id.shortName)"
        case .commit(let id): "commit\(id.shortName)"
        case .release(let id): "release\(id.shortName)"
        case .answer(let claim, let failure): "answer\(claim?.shortName ?? 0)\(failure?.text ?? "")"
        }
    }
}

extension Handoffs {
    fileprivate var ids: [HandoffID] { handoffs.map(\.id) }
}

extension Handoff {
    fileprivate func key(at now: Instant) -> String {
        let end: Duration = if case .cancelled(_, let end) = fate { end - now } else { .zero }
        let name =
            switch step {
            case nil: "admitted"
            case .announce: "announce"
            case .claim(let isAgain): "claim \(isAgain)"
            case .prepare: "prepare"
            case .fetch: "fetch"
            case .renew: "renew"
            case .commit(let start): "commit \(now - start)"
            case .wait(_, .commit(let start)): "wait \(now - start)"
            case .wait(_, .fetch): "rest"
            case .wait: "wait"
            case .deliver: "deliver"
            case .hold: "hold"
            case .fail: "fail"
            case .release: "release"
            }
        return "\(name) \(path.count) \(mayHaveMoved) \(isSettled) \(isCancelled) \(end)"
    }
}
