// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonProtocol

/// The requests of other devices that a device is at.
struct Service {
    struct Request {
        let claim: ClaimID
        let wire: Wire
        let number: Int
    }

    /// Devices that wait for an activity.
    var waiting: [Request] = []
    /// Devices that were sent one, and have not said that they read it.
    var given: [Request] = []
    /// Claims of which a document is sent, and the connection for that.
    var sending: [(claim: ClaimID, wire: Wire)] = []
    /// Requests of devices that lack revocation lists.
    var behind: [(wire: Wire, number: Int, serve: () -> Void)] = []
    /// Devices that wait for the list until a withdrawn activity has been replaced.
    var lists: [(wire: Wire, number: Int)] = []

    /// Whether a request on a connection has no answer yet.
    func isBusy(_ wire: Wire) -> Bool {
        (waiting + given).contains { $0.wire === wire } || behind.contains { $0.wire === wire }
            || lists.contains { $0.wire === wire }
    }
}

/// The origin's side of handoffs: it answers, and says to the core what it sees of the connections.
extension Device {
    func serve(_ request: Request, _ number: Int, on wire: Wire) {
        let peer = wire.peer(of: self)
        guard !lists.isRevoked(wire.device(of: self)) else { return answer(.failure(.notAdmitted), number, on: wire) }
        switch request {
        case .lists(let revision):
            world.ledger.serve(peer, by: self)
            answer(.success(.lists(lists)), number, on: wire)
            // The device says with another question that it has what it was told now.
            meet(wire, having: revision) {}
        case .release(let claim, let failure):
            decide { $0.release(claim, by: peer, because: failure) }
            answer(.success(.done), number, on: wire)
        case .list, .claim, .present, .piece, .commit:
            whenCurrent(number, on: wire) { [unowned self] in
                if wire.isOpen(for: self) { serveMember(request, number, on: wire) }
            }
        }
    }

    private func serveMember(_ request: Request, _ number: Int, on wire: Wire) {
        let peer = wire.peer(of: self)
        switch request {
        case .lists, .release: break
        case .list:
            decide { _ in }
            service.lists.append((wire, number))
            if !own.isAwaitingReplacement { answerLists() }
        case .claim(let activity):
            let id: ClaimID = numbered(UInt64(index) << 48 | UInt64(nextNumber()))
            service.waiting.append(.init(claim: id, wire: wire, number: number))
            decide { $0.claim(activity, as: id, by: wire.asker(of: self)) }
        case .present(let claim):
            let result = decide { $0.present(claim, by: wire.asker(of: self)) }
            answer(result.map { _ in .done }, number, on: wire)
        case .piece(let claim, let piece): sendPiece(piece, of: claim, number, on: wire)
        case .commit(let claim):
            let result = decide { $0.setContinued(claim, by: wire.asker(of: self)) }
            if case .success = result, phase == .running { world.ledger.commit(claim) }
            note("\(peer.name) says that it continues\((try? result.get()) == nil ? ", in vain" : "")")
            answer(result.map { .done }, number, on: wire)
        }
    }

    func answer(_ answer: Result<Answer, Contents.Failure>, _ number: Int, on wire: Wire) {
        if phase == .running { world.send(.answer(number, answer), on: wire, from: self) }
    }

    func answerLists() {
        let lists = service.lists
        service.lists = []
        let items = own.visible.map(\.activity)
        for (wire, number) in lists {
            world.ledger.serve(wire.peer(of: self), by: self)
            answer(.success(.list(items)), number, on: wire)
        }
    }

    /// The core answers a device that asked for an activity.
    func give(_ claim: ClaimID, _ result: Result<Item, Contents.Failure>) {
        guard let index = service.waiting.firstIndex(where: { $0.claim == claim }) else {
            if case .success(let item) = result {
                world.ledger.breach(.payload, "“\(item.name)” is given to a device that does not wait for it")
            }
            return
        }
        let request = service.waiting.remove(at: index)
        switch result {
        case .success(let item):
            let peer = request.wire.peer(of: self)
            note("gives “\(item.name)” to \(peer.name)")
            world.ledger.serve(peer, by: self)
            world.ledger.give(item, to: peer)
            service.given.append(request)
            answer(.success(.payload(claim, item)), request.number, on: request.wire)
        case .failure(let failure): answer(.failure(failure), request.number, on: request.wire)
        }
    }

    private func sendPiece(_ piece: Int, of claim: ClaimID, _ number: Int, on wire: Wire) {
        let peer = wire.peer(of: self)
        let presented = decide { $0.present(claim, by: wire.asker(of: self)) }
        guard case .success(let held) = presented else {
            return answer(presented.map { _ in .done }, number, on: wire)
        }
        world.ledger.goOn(held)
        decide {
            $0.goOn(claim)
            $0.report(piece, of: claim)
        }
        service.sending.removeAll { $0.claim == claim }
        if chance.happens(world.isQuiet ? 0 : world.plan.noise.failures / 10) {
            decide { $0.fail(claim, because: .documentChanged) }
            return answer(.failure(.documentChanged), number, on: wire)
        }
        service.sending.append((claim, wire))
        after(chance.seconds(0.001, 0.2)) { [unowned self] in
            if piece + 1 >= held.kept.item.manner.pieces { service.sending.removeAll { $0.claim == claim } }
            guard wire.isOpen(for: self) else { return }
            world.ledger.serve(peer, by: self)
            answer(.success(.done), number, on: wire)
        }
    }

    /// A device does not wait for an answer any longer, or has no use for it.
    func abort(_ number: Int, on wire: Wire, because failure: Contents.Failure) {
        service.behind.removeAll { $0.wire === wire && $0.number == number }
        let ended = (service.waiting + service.given).filter { $0.wire === wire && $0.number == number }
        service.waiting.removeAll { $0.wire === wire && $0.number == number }
        service.given.removeAll { $0.wire === wire && $0.number == number }
        for request in ended { decide { $0.release(request.claim, by: wire.peer(of: self), because: failure) } }
    }

    /// A connection has ended.
    func endService(on wire: Wire) {
        let peer = wire.peer(of: self)
        let waiting = service.waiting.filter { $0.wire === wire }
        service.waiting.removeAll { $0.wire === wire }
        service.given.removeAll { $0.wire === wire }
        service.behind.removeAll { $0.wire === wire }
        service.lists.removeAll { $0.wire === wire }
        for request in waiting { decide { $0.release(request.claim, by: peer, because: .connectionLost) } }
        let cut = service.sending.filter { $0.wire === wire }.map(\.claim)
        service.sending.removeAll { $0.wire === wire }
        let isSeenFirst = chance.happens(0.5)
        if isSeenFirst { decide { $0.connectionEnded(of: wire.asker(of: self)) } }
        for claim in cut { decide { $0.interrupt(claim, because: .connectionLost) } }
        if !isSeenFirst { decide { $0.connectionEnded(of: wire.asker(of: self)) } }
    }
}
