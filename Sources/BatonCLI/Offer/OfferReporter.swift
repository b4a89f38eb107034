// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import SystemPackage

/// Reports the events of an offer: as JSON on standard output, or as sentences on standard error.
actor OfferReporter {
    private let isJSON: Bool
    private let progress: ProgressLine
    private var transfers = OfferTransfers()

    init(isJSON: Bool, progress: ProgressLine = ProgressLine()) {
        self.isJSON = isJSON
        self.progress = progress
    }

    /// - Parameters:
    ///   - isHandoffOff: whether Handoff is switched off. The offer then waits until it is on.
    ///   - path: the path of the document; `nil` if the offer has none.
    func offered(_ offer: NodeOffer, at path: FilePath? = nil, isHandoffOff: Bool) async throws {
        let id = ListedActivity.text(ofID: offer.id)
        if isJSON {
            let state = isHandoffOff ? [JSONValue.Member("handoff", "off")] : []
            try emit(
                "offered",
                [JSONValue.Member("id", .string(id)), JSONValue.Member("title", .string(offer.title))]
                    + (path.map { JSONValue.Member.path("path", $0.bytes) } ?? []) + state)
        } else {
            let title = offer.title.isEmpty ? "(no title)" : SafeText.escaped(offer.title)
            let next =
                isHandoffOff
                ? "no device sees it, because Handoff is off: switch it on with `baton handoff on`"
                : "run `baton accept` on another device"
            await progress.say("offering \(title) (\(id.prefix(8))): \(next); ^C withdraws")
        }
    }

    /// - Parameter trouble: what the responder of this machine does, in the node's words; nil: it is back.
    func responder(_ trouble: String?) async throws {
        if isJSON {
            let event = ResponderWatch.event(trouble)
            try emit(event.name, event.members)
        } else {
            await progress.say(ResponderWatch.sentence(trouble))
        }
    }

    func willSave(_ device: String) async throws {
        guard isJSON else { return }
        try emit("willSave", [Self.device(device)])
    }

    func taken(_ event: WireOfferEvent.Taken, claim: UInt64) async throws {
        let name = await name(of: claim, by: event.device)
        if isJSON {
            try emit("taken", Self.members(event, claim))
        } else {
            await progress.say("\(name) is taking it over")
        }
    }

    func progressed(_ event: WireProgressReport, claim: UInt64) async throws {
        let name = await name(of: claim, by: event.device)
        if isJSON {
            let now = Instant(nanoseconds: MonotonicClock.nanoseconds())
            try emit(
                "progress", Self.device(event.device, claim) + transfers.members(event, claim: claim, now: now))
        } else {
            await progress.update(name, bytes: event.bytes, total: event.total, bottleneck: event.bottleneck)
        }
    }

    func continued(_ event: WireOfferEvent.Taken, claim: UInt64) async throws {
        let name = await end(of: claim, by: event.device)
        if isJSON {
            try emit("continued", Self.members(event, claim))
        } else {
            let size = event.bytes > 0 ? " (\(HumanUnits.bytes(event.bytes)))" : ""
            await progress.say("continued by \(name)\(size)")
        }
    }

    func failed(_ failure: WireFailure, claim: UInt64) async throws {
        let error = CommandError(HandoffError(failure))
        let name = await end(of: claim, by: failure.device)
        if isJSON {
            try emit(
                "failed",
                Self.device(failure.device, claim) + [
                    JSONValue.Member("code", .string(error.code)),
                    JSONValue.Member("message", .string(failure.message)),
                ])
        } else {
            let who = name.isEmpty ? "a device" : name
            await progress.say("\(who) did not get it: \(SafeText.sentence(failure.message))")
        }
    }

    /// The transfer to a device was cut. The device goes on by itself, so its transfer keeps its name.
    func interrupted(_ cause: WireFailure, claim: UInt64) async throws {
        let name = await name(of: claim, by: cause.device)
        await progress.remove(name)
        if isJSON {
            let error = CommandError(HandoffError(cause))
            try emit(
                "interrupted",
                Self.device(cause.device, claim) + [
                    JSONValue.Member("code", .string(error.code)),
                    JSONValue.Member("message", .string(cause.message)),
                ])
        } else {
            let reason = SafeText.sentence(cause.message)
            await progress.say("\(name) stopped receiving: \(reason); waiting for it to go on")
        }
    }

    /// The node has stopped, and the command waits for the next one.
    func nodeLost() async throws {
        await progress.removeAll()
        transfers = OfferTransfers()
        if isJSON {
            try emit("nodeLost", [])
        } else {
            await progress.say("the node has stopped: nothing is offered until one runs again; ^C ends the wait")
        }
    }

    /// - Parameter transfers: devices that took the activity over before, and are still sent its document.
    func withdrawn(_ id: [UInt8], stillSent transfers: [WireTransfer] = []) async throws {
        await progress.clear()
        if isJSON {
            try emit(
                "withdrawn",
                [JSONValue.Member("id", .string(ListedActivity.text(ofID: id)))]
                    + TransferRendering.members(ofStillSent: transfers))
        } else {
            Output.say(transfers.isEmpty ? "withdrawn" : "withdrawn: no other device can take it now")
            for transfer in transfers { Output.say(TransferRendering.stillSent(transfer)) }
        }
    }

    /// A message that is no event, such as the failure of a served command.
    func note(_ text: String) async {
        await progress.say(text)
    }

    /// Gives a transfer a name for its line.
    private func name(of claim: UInt64, by device: String) async -> String {
        let (name, forgotten) = transfers.name(of: claim, by: device)
        if let forgotten { await progress.remove(forgotten) }
        return name
    }

    /// Removes the line of a transfer that is over, and returns its name.
    private func end(of claim: UInt64, by device: String) async -> String {
        let name = await name(of: claim, by: device)
        transfers.end(of: claim, by: device)
        await progress.remove(name)
        return name
    }

    /// Older nodes send no claim.
    private static func device(_ name: String, _ claim: UInt64) -> [JSONValue.Member] {
        [device(name)] + (claim > 0 ? [JSONValue.Member("claim", .count(claim))] : [])
    }

    private static func device(_ name: String) -> JSONValue.Member {
        JSONValue.Member("device", .string(name))
    }

    private static func members(_ event: WireOfferEvent.Taken, _ claim: UInt64) -> [JSONValue.Member] {
        device(event.device, claim) + [
            JSONValue.Member("deviceID", .string(event.deviceID)), JSONValue.Member("bytes", .count(event.bytes)),
        ]
    }

    private func emit(_ event: String, _ members: [JSONValue.Member]) throws {
        try Output.line(EventLine.text(event, members))
    }
}
