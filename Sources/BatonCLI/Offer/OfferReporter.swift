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
        let title = offer.title.isEmpty ? "(no title)" : SafeText.escaped(offer.title)
        let next =
            isHandoffOff
            ? "no device sees it, because Handoff is off: switch it on with `baton handoff on`"
            : "run `baton accept` on another device"
        let state: [JSONValue.Member] = isHandoffOff ? [.text("handoff", "off")] : []
        try await tell(
            "offered",
            [.text("id", id), .text("title", offer.title)]
                + (path.map { JSONValue.Member.path("path", $0.bytes) } ?? []) + state,
            "offering \(title) (\(id.prefix(8))): \(next); ^C withdraws")
    }

    /// - Parameter trouble: what the responder of this machine does, in the node's words; nil: it is back.
    func responder(_ trouble: String?) async throws {
        let event = ResponderWatch.event(trouble)
        try await tell(event.name, event.members, ResponderWatch.sentence(trouble))
    }

    func willSave(_ device: String) async throws {
        try await tell("willSave", [Self.device(device)], nil)
    }

    func taken(_ event: WireOfferEvent.Taken, claim: UInt64) async throws {
        let name = await name(of: claim, by: event.device)
        try await tell("taken", Self.members(event, claim), "\(name) is taking it over")
    }

    func progressed(_ event: WireProgressReport, claim: UInt64) async throws {
        let name = await name(of: claim, by: event.device)
        if isJSON {
            let now = Instant(nanoseconds: MonotonicClock.nanoseconds())
            let members = Self.device(event.device, claim) + transfers.members(event, claim: claim, now: now)
            try await tell("progress", members, nil)
        } else {
            await progress.update(name, bytes: event.bytes, total: event.total, bottleneck: event.bottleneck)
        }
    }

    func continued(_ event: WireOfferEvent.Taken, claim: UInt64) async throws {
        let name = await end(of: claim, by: event.device)
        let size = event.bytes > 0 ? " (\(HumanUnits.bytes(event.bytes)))" : ""
        try await tell("continued", Self.members(event, claim), "continued by \(name)\(size)")
    }

    func failed(_ failure: WireFailure, claim: UInt64) async throws {
        let name = await end(of: claim, by: failure.device)
        let who = name.isEmpty ? "a device" : name
        try await tell(
            "failed", Self.members(failure, claim), "\(who) did not get it: \(SafeText.sentence(failure.message))")
    }

    /// The transfer to a device was cut. The device goes on by itself, so its transfer keeps its name.
    func interrupted(_ cause: WireFailure, claim: UInt64) async throws {
        let name = await name(of: claim, by: cause.device)
        await progress.remove(name)
        try await tell(
            "interrupted", Self.members(cause, claim),
            "\(name) stopped receiving: \(SafeText.sentence(cause.message)); waiting for it to go on")
    }

    /// The node has stopped, and the command waits for the next one.
    func nodeLost() async throws {
        await progress.removeAll()
        transfers = OfferTransfers()
        try await tell(
            "nodeLost", [], "the node has stopped: nothing is offered until one runs again; ^C ends the wait")
    }

    /// - Parameter transfers: devices that took the activity over before, and are still sent its document.
    func withdrawn(_ id: [UInt8], stillSent transfers: [WireTransfer] = []) async throws {
        await progress.clear()
        if isJSON {
            let members: [JSONValue.Member] = [.text("id", ListedActivity.text(ofID: id))]
            try await tell("withdrawn", members + TransferRendering.members(ofStillSent: transfers), nil)
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
        [device(name)] + (claim > 0 ? [.count("claim", claim)] : [])
    }

    private static func device(_ name: String) -> JSONValue.Member {
        .text("device", name)
    }

    private static func members(_ event: WireOfferEvent.Taken, _ claim: UInt64) -> [JSONValue.Member] {
        device(event.device, claim) + [
            .text("deviceID", event.deviceID), .count("bytes", event.bytes),
        ]
    }

    private static func members(_ failure: WireFailure, _ claim: UInt64) -> [JSONValue.Member] {
        device(failure.device, claim) + [
            .text("code", CommandError(HandoffError(failure)).code), .text("message", failure.message),
        ]
    }

    /// Prints an event as JSON, or for people as a sentence if it has one.
    private func tell(_ event: String, _ members: [JSONValue.Member], _ sentence: String?) async throws {
        if isJSON {
            try Output.line(EventLine.text(event, members))
        } else if let sentence {
            await progress.say(sentence)
        }
    }
}

/// The active transfers of one offer, each with a name of its own.
///
/// Several devices may have the same name, and one device may accept an offer more than once. Only the number of the
/// claim distinguishes them.
struct OfferTransfers {
    /// The most transfers: 128, as many as a node has claims. Older nodes may never report the end of a transfer. If
    /// there are more, the least recently updated one is dropped.
    static let bound = 128

    private struct Key: Equatable {
        let claim: UInt64
        /// The device's name; empty if there is a claim, because the device may change its name.
        let device: String

        init(_ claim: UInt64, _ device: String) {
            self.claim = claim
            self.device = claim > 0 ? "" : device
        }
    }

    /// Sorted by the time of the last update; the most recent one is last.
    private var transfers: [(key: Key, name: String, told: ProgressMembers)] = []

    /// The name of a transfer until it ends, safe to show: the device's name, or “ubuntu (2)” if another transfer has
    /// that name.
    ///
    /// - Parameter claim: the number of the claim; 0 from an older node.
    /// - Returns: the name, and the name of the transfer that was dropped for it.
    mutating func name(of claim: UInt64, by device: String) -> (name: String, forgotten: String?) {
        let key = Key(claim, device)
        if let index = transfers.firstIndex(where: { $0.key == key }) {
            let transfer = transfers.remove(at: index)
            transfers.append(transfer)
            return (transfer.name, nil)
        }
        let forgotten = transfers.count < Self.bound ? nil : transfers.removeFirst().name
        let name = unusedName(for: SafeText.escaped(device))
        transfers.append((key, name, ProgressMembers()))
        return (name, forgotten)
    }

    /// The members of a transfer in `--json`.
    mutating func members(_ event: WireProgressReport, claim: UInt64, now: Instant) -> [JSONValue.Member] {
        let key = Key(claim, event.device)
        guard let index = transfers.firstIndex(where: { $0.key == key }) else { return [] }
        return transfers[index].told.members(event, now: now)
    }

    /// Ends a transfer. Its name is free for another one.
    mutating func end(of claim: UInt64, by device: String) {
        transfers.removeAll { $0.key == Key(claim, device) }
    }

    private func unusedName(for device: String) -> String {
        var (name, number) = (device, 1)
        while transfers.contains(where: { $0.name == name }) {
            number += 1
            name = "\(device) (\(number))"
        }
        return name
    }
}
