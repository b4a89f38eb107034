// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonProtocol

/// A window of an application. It stays when the node ends, and offers its activity to the next one.
struct Window {
    var item: Item
    var offer: OfferID?
    var isWanted = true
    /// Claims that the application was told of, without what became of them.
    var open: Set<UInt64> = []
}

/// The applications of a device that offer activities, and their user.
extension Device {
    /// How long an application may take to save.
    private static let saveDeadline = Duration.milliseconds(5500)

    func show(_ number: Int, _ manner: Item.Manner) {
        close(number)
        let old = windows[number]
        // A window may show again what it showed before, but nothing that another device has taken.
        let isAgain = chance.happens(0.3) && old?.open.isEmpty == true && old?.item.manner == manner
        let generation = (old?.item.generation ?? 0) + (isAgain && old?.item.isExclusive == false ? 0 : 1)
        let item = Item(
            device: index, window: number, generation: generation, manner: manner,
            expires: manner.lifetime.map { now.unixTime + $0 })
        windows[number] = Window(item: item)
        offer(number)
    }

    private func offer(_ number: Int) {
        guard let window = windows[number], window.isWanted else { return }
        let id: OfferID = numbered(UInt64(index) << 48 | UInt64(nextNumber()))
        windows[number]?.offer = id
        world.ledger.begin(offer: id, window.item, at: world.time)
        let refusal = decide { $0.offer(window.item, from: index, as: id) }
        note("offer \(id.number & 0xffff_ffff) of “\(window.item.name)”\(refusal.map { ": \($0)" } ?? "")")
        if refusal != nil {
            windows[number]?.offer = nil
            world.ledger.refuse(offer: id)
        }
    }

    func change(_ number: Int) {
        guard let offer = windows[number]?.offer, var item = windows[number]?.item else { return }
        item.version += 1
        windows[number]?.item = item
        decide { $0.update(offer, to: item, becomesCurrent: true) }
    }

    func close(_ number: Int) {
        windows[number]?.isWanted = false
        guard let offer = windows[number]?.offer else { return }
        windows[number]?.offer = nil
        decide { $0.withdraw(offer) }
    }

    func setSwitch(_ isOn: Bool) {
        isHandoffOn = isOn
        decide { $0.setSwitch(HandoffSwitch(isOn: isOn)) }
        if !isOn { decideHandoffs { $0.cancelAll(because: .cancelled) } }
    }

    func cancelTransfer(_ choice: Int) {
        guard !own.claims.isEmpty else { return }
        let claim = own.claims[choice % own.claims.count]
        note("cancels claim \(claim.number) of \(claim.device.name)")
        _ = decide { $0.cancel(claim.id) }
    }

    // MARK: What the node tells

    func hear(_ told: Told<Contents>, of offer: OfferID, _ claim: Claim<Contents>?) {
        note("application hears: \(told.words)\(claim.map { " (claim \($0.number) of \($0.device.name))" } ?? "")")
        world.ledger.tell(told, of: offer, claim, on: self)
        let number = windows.keys.sorted().first { windows[$0]?.offer == offer }
        switch (told, number, claim) {
        case (.withdrawn, let number?, _):
            windows[number]?.offer = nil
            // It is offered again by the application if the node stops, and not if it has expired or moved.
            if own.stopped == nil { windows[number]?.isWanted = false }
        case (.taken, let number?, let claim?): windows[number]?.open.insert(claim.number)
        case (.continued, _, let claim?), (.failed, _, let claim?):
            for key in windows.keys { windows[key]?.open.remove(claim.number) }
            guard case .continued = told else { return }
            // An activity that has moved is not shown any more.
            if let number, windows[number]?.item.isExclusive == true { windows[number]?.isWanted = false }
        case (.taken, _, _), (.progress, _, _), (.interrupted, _, _), (.continued, _, _), (.failed, _, _),
            (.withdrawn, _, _):
            break
        }
    }

    func askToSave(_ offer: Offer<Contents>, for device: PeerName) {
        note("application is asked to save “\(offer.activity.name)” for \(device.name)")
        var item = offer.activity
        item.version += 1
        let isFailure = chance.happens(world.isQuiet ? 0 : world.plan.noise.failures)
        let isHanging = isFailure && chance.happens(0.3)
        let answer: Result<(payload: Item, kept: Contents.Kept), Contents.Failure> =
            isFailure ? .failure(.notSaved) : .success((item, Contents.Kept(item: item)))
        after(isHanging ? Self.saveDeadline : chance.seconds(0.001, isFailure ? 4 : 0.3)) { [unowned self] in
            note("application has\(isFailure ? " not" : "") saved “\(item.name)”")
            decide { $0.saved(offer.id, answer) }
        }
    }

    /// The node has ended. An application does not know then what became of an exclusive activity that a device had.
    func disconnectApplications() {
        for key in windows.keys {
            windows[key]?.offer = nil
            if windows[key]?.item.isExclusive == true, windows[key]?.open.isEmpty == false {
                windows[key]?.isWanted = false
            }
            windows[key]?.open = []
        }
    }

    func reconnectApplications() {
        for key in windows.keys.sorted() where windows[key]?.isWanted == true {
            after(chance.seconds(0.01, 0.5)) { [unowned self] in if windows[key]?.offer == nil { offer(key) } }
        }
    }
}

extension Told<Contents> {
    var words: String {
        switch self {
        case .taken: "taken"
        case .progress(let pieces): "\(pieces) pieces"
        case .interrupted(let failure): "interrupted: \(failure)"
        case .continued: "continued"
        case .failed(let failure): "failed: \(failure)"
        case .withdrawn: "withdrawn"
        }
    }
}
