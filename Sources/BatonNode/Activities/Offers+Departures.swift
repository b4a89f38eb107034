// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import SwiftProtobuf

/// What was withdrawn while devices were taking it over: its application still hears what becomes of that.
extension Offers {
    /// Tells the application that the activity is offered no more. Its events end with that, or, where a device is
    /// taking it over, when that has come off or failed, the claim is gone, or the application is.
    func depart(_ offer: Offer) {
        offer.events.yield(.with { $0.withdrawn = .init() })
        let id = offer.activity.id
        guard !offers.contains(where: { $0.activity.id == id }), claims.isUnsettled(id, now: .now) else {
            return offer.events.finish()
        }
        departed.updateValue(offer, forKey: id)?.events.finish()
        awaitLapse()
        let application = offer.application
        guard departing.insert(ObjectIdentifier(application)).inserted else { return }
        Task { [weak self] in
            await application.ended()
            await self?.applicationEnded(application)
        }
    }

    /// Tells applications of devices that have gone without a word, and ends the events of what nobody is taking over
    /// any more.
    func settle() {
        claims.expire(now: .now)
        for loss in claims.takeLosses() {
            report(.failed(loss.error.failure), of: loss.activity, claim: loss.number)
            saves[loss.activity]?.remove(loss.claim, because: HandoffError(loss.error.code, loss.error.message))
        }
        for (id, offer) in departed where !claims.isUnsettled(id, now: .now) {
            offer.events.finish()
            departed[id] = nil
        }
        awaitLapse()
    }

    /// Looks again when the next claim lapses.
    func awaitLapse() {
        guard let next = claims.claims.values.compactMap(\.lapsesAt).min() else {
            lapse?.cancel()
            return
        }
        if lapse == nil {
            lapse = BatonEventLoop.Timer(on: loop) { [weak self] in self?.assumeIsolated { $0.settle() } }
        }
        lapse?.schedule(at: next.nanoseconds)
    }

    private func applicationEnded(_ application: Connection) {
        departing.remove(ObjectIdentifier(application))
        for (id, offer) in departed where offer.application === application {
            offer.events.finish()
            departed[id] = nil
        }
    }
}
