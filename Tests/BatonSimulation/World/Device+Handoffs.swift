// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonProtocol

/// The driver's part of one handoff.
struct Party {
    let origin: DeviceID
    let item: Item
    let accepted: Instant
    /// Rises with each step: the outcome of a step that was given up counts no more.
    var step = 0
    /// The request that the step waits for.
    var asked: Int?
    /// The outcome of the step under way if it is ended early.
    var early: Handoffs<Contents>.Outcome?
    var isHeld = false
    var claim: ClaimID?
    /// The connection on which the claim was presented last.
    var wire: Wire?
    /// The connection that is kept open for the claim.
    var held: Wire?
    var payload: Item?
    /// Pieces of the document that are here.
    var pieces: UInt64 = 0

    /// Begins a step, or ends the one under way.
    mutating func go(early: Handoffs<Contents>.Outcome?) {
        step += 1
        (asked, self.early, isHeld) = (nil, early, false)
    }
}

extension Contents {
    static func setback(of failure: Failure) -> Setback {
        switch failure {
        case .connectionLost, .refused(.lapsed): .lost
        case .unreachable, .timedOut, .isStopping, .refused(.stopping): .away
        case .refused(.noSuchClaim): .unclaimed
        case .refused(.notOffered): .unoffered
        case .refused(.tooManyClaims), .refused(.displaced), .refused(.tooManyOffers), .refused(.tooManyHandoffs),
            .noPlace:
            .noPlace
        case .documentChanged: .changed
        case .refused, .notAdmitted, .declined, .notSaved, .cancelled: .final
        }
    }
}

/// The continuing side: the driver of `Handoffs`, and the user who accepts.
extension Device {
    private typealias Outcome = Handoffs<Contents>.Outcome

    /// How long a device waits for the payload, for a piece of a document, and for any other answer.
    private static let payloadDeadline = Duration.seconds(15)
    private static let pieceDeadline = Duration.seconds(25)
    static let answerDeadline = Duration.seconds(10)

    func accept(_ choice: Int) {
        let choices = listing
        guard !choices.isEmpty, isHandoffOn else { return }
        let (origin, item) = choices[choice % choices.count]
        let id: HandoffID = numbered(UInt64(index) << 48 | UInt64(nextNumber()))
        let ask = HandoffAsk(
            origin: PeerName(id: origin.description, name: letters(origin.machine)),
            activity: item.id, title: item.name,
            folder: item.manner.pieces > 0 ? [UInt8(truncatingIfNeeded: chance.below(2))] : nil,
            keepsClaim: chance.happens(0.2))
        if let failure = decideHandoffs({ $0.accept(ask, as: id) }) {
            return note("may not accept “\(item.name)”: \(failure)")
        }
        guard phase == .running else { return }
        note("accepts “\(item.name)” of \(letters(origin.machine)) as handoff \(id.number & 0xffff_ffff)")
        parties[id] = Party(origin: origin, item: item, accepted: world.time)
        world.ledger.accept(id, item, on: self)
        decideHandoffs { $0.begin(id) }
    }

    /// A user cancels a handoff, or the program that asked for it goes.
    func cancel(_ choice: Int) {
        let ids = parties.keys.sorted { $0.number < $1.number }
        guard !ids.isEmpty else { return }
        let id = ids[choice % ids.count]
        if chance.happens(0.3) { return decideHandoffs { $0.detach(id) } }
        note("cancels handoff \(id.number & 0xffff_ffff)")
        decideHandoffs { $0.cancel(id, because: .cancelled) }
    }

    func letGo(_ choice: Int) {
        let ids = parties.keys.sorted { $0.number < $1.number }.filter { parties[$0]?.isHeld == true }
        if !ids.isEmpty { interrupt(ids[choice % ids.count]) }
    }

    func carryOut(_ effect: Handoffs<Contents>.Effect) {
        switch effect {
        case .perform(let id, let step): perform(step, of: id)
        case .interrupt(let id): interrupt(id)
        case .paused(let id, let failure, _, _): note("handoff \(id.number & 0xffff_ffff) is cut: \(failure)")
        case .continued(let id):
            note("handoff \(id.number & 0xffff_ffff) is continued")
            world.ledger.finish(id, isContinued: true, on: self)
            guard let party = parties[id] else { return }
            world.statistics.continued += 1
            world.statistics.latencies.append((world.time - party.accepted) / .milliseconds(1))
        case .ended(let id):
            world.statistics.handoffs += 1
            world.ledger.end(id, on: self)
            if let held = parties.removeValue(forKey: id)?.held { links.letGo(of: held) }
        }
    }

    // MARK: Steps

    private func interrupt(_ id: HandoffID) {
        guard let party = parties[id], let early = party.early else { return }
        if let asked = party.asked { giveUp(asked) }
        // Not within the decision that orders it.
        let step = party.step
        after(.zero) { [unowned self] in finish(id, step, early) }
    }

    private func finish(_ id: HandoffID, _ step: Int, _ outcome: Outcome) {
        guard parties[id]?.step == step else { return }
        parties[id]?.go(early: nil)
        decideHandoffs { $0.performed(id, outcome) }
    }

    private func perform(_ step: Handoffs<Contents>.Step, of id: HandoffID) {
        guard let party = parties[id] else { return }
        if let asked = party.asked { giveUp(asked) }
        let number = party.step + 1
        parties[id]?.go(early: .failed(.cancelled))
        func later(_ delay: Duration, _ outcome: Outcome) {
            after(delay) { [unowned self] in finish(id, number, outcome) }
        }
        let fails = chance.happens(world.isQuiet ? 0 : world.plan.noise.failures / 4)
        switch step {
        case .announce: later(chance.seconds(0.001, 0.3), fails ? .failed(.declined) : .done)
        case .claim: claim(id, number)
        case .prepare:
            let item = party.payload ?? party.item
            var content: HandoffContent = item.isExclusive ? .exclusive : []
            if item.manner.pieces > 0 { content.insert(.document) }
            later(.milliseconds(1), .prepared(content))
        case .fetch: fetch(id, number)
        case .renew: renew(id, number)
        case .wait(let time, _):
            parties[id]?.early = .done
            later(time, .done)
        case .commit: commit(id, number)
        case .deliver:
            let isHere = chance.happens(0.5)
            if !fails { world.ledger.deliver(party.payload ?? party.item, party.claim, to: self) }
            later(
                chance.seconds(0.001, 0.5),
                fails ? .failed(.declined) : .delivered(to: isHere ? "application \(party.item.window)" : nil))
        case .hold:
            parties[id]?.early = .done
            parties[id]?.isHeld = true
            later(chance.seconds(0.5, 400), .done)
        case .fail(let failure):
            note("handoff \(id.number & 0xffff_ffff) has failed: \(failure)")
            world.statistics.failed["\(failure)".prefix { $0 != "(" }.description, default: 0] += 1
            world.ledger.finish(id, isContinued: false, on: self)
            parties[id]?.early = nil
            later(.milliseconds(1), .done)
        case .release(let failure):
            parties[id]?.early = nil
            // If the connection has ended, so does the claim by its lease.
            guard let claim = party.claim, party.wire?.isOpen(for: self) == true else { return later(.zero, .done) }
            request(.release(claim, failure), of: id, number, within: Self.answerDeadline) { _ in .done }
        }
    }

    /// Sends a request to the origin of a handoff, and finishes the step with its answer. It goes over the connection
    /// on which the claim was presented last, if that is open.
    private func request(
        _ request: Request, of id: HandoffID, _ step: Int, within deadline: Duration,
        then: @escaping (Result<Answer, Contents.Failure>) -> Outcome?
    ) {
        guard let party = parties[id] else { return }
        connect(to: party.origin, over: party.wire, isWanted: true) { [unowned self] result in
            guard parties[id]?.step == step else { return }
            switch result {
            case .failure(let failure):
                if let outcome = then(.failure(failure)) { finish(id, step, outcome) }
            case .success(let wire):
                parties[id]?.wire = wire
                let number = ask(request, on: wire, within: deadline) { [unowned self] answer in
                    guard parties[id]?.step == step else { return }
                    parties[id]?.asked = nil
                    if let outcome = then(answer) { finish(id, step, outcome) }
                }
                parties[id]?.asked = number
            }
        }
    }

    private func claim(_ id: HandoffID, _ step: Int) {
        guard let item = parties[id]?.item else { return }
        request(.claim(item.id), of: id, step, within: Self.payloadDeadline) { [unowned self] answer in
            switch answer {
            case .success(.payload(let claim, let payload)):
                parties[id]?.claim = claim
                parties[id]?.payload = payload
                hold(id)
                return .done
            case .success: return .failed(.connectionLost)
            case .failure(let failure): return .failed(failure)
            }
        }
    }

    /// Keeps the connection open on which the claim was presented.
    private func hold(_ id: HandoffID) {
        guard let party = parties[id], let wire = party.wire else { return }
        if let held = party.held { links.letGo(of: held) }
        links.hold(wire)
        parties[id]?.held = wire
    }

    private func renew(_ id: HandoffID, _ step: Int) {
        guard let claim = parties[id]?.claim else { return self.claim(id, step) }
        request(.present(claim), of: id, step, within: Self.answerDeadline) { [unowned self] answer in
            switch answer {
            case .success:
                hold(id)
                return .done
            case .failure(.refused(.noSuchClaim)):
                self.claim(id, step)
                return nil
            case .failure(let failure): return .failed(failure)
            }
        }
    }

    private func commit(_ id: HandoffID, _ step: Int) {
        guard let claim = parties[id]?.claim else { return finish(id, step, .failed(.refused(.noSuchClaim))) }
        request(.commit(claim), of: id, step, within: Self.answerDeadline) { answer in
            switch answer {
            case .success: .done
            case .failure(let failure): .failed(failure)
            }
        }
    }

    private func fetch(_ id: HandoffID, _ step: Int) {
        guard let party = parties[id], let claim = party.claim, let payload = party.payload else { return }
        let attempt = TransferRetry.Attempt(bytes: party.pieces, kept: party.pieces)
        parties[id]?.early = .cut(.cancelled, attempt)
        guard party.pieces < payload.manner.pieces else {
            after(.zero) { [unowned self] in finish(id, step, .done) }
            return
        }
        request(.piece(claim, Int(party.pieces)), of: id, step, within: Self.pieceDeadline) { [unowned self] answer in
            if case .failure(let failure) = answer { return .cut(failure, attempt) }
            parties[id]?.pieces += 1
            fetch(id, step)
            return nil
        }
    }
}
