// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import SystemPackage

/// Reports the events of an offer: as JSON on standard output, or as sentences on standard error.
struct OfferReporter: Sendable {
    let output: EventOutput

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
        let state: [JSONMember] = isHandoffOff ? [.text("handoff", "off")] : []
        try await output.tell(
            "offered",
            [.text("id", id), .text("title", offer.title)]
                + (path.map { JSONMember.path("path", $0.bytes) } ?? []) + state,
            "offering \(title) (\(id.prefix(8))): \(next); ^C withdraws")
    }

    func willSave(_ device: String) async throws {
        try await output.tell("willSave", [.text("device", device)])
    }

    func taken(_ event: WireOfferEvent.Taken, claim: UInt64) async throws {
        let name = await name(of: claim, by: event.device)
        try await output.tell("taken", Self.members(event, claim), "\(name) is taking it over")
    }

    func progressed(_ event: WireProgressReport, claim: UInt64) async throws {
        try await output.progressed(
            event, of: SafeText.escaped(event.device), claim: claim, Self.device(event.device, claim))
    }

    func continued(_ event: WireOfferEvent.Taken, claim: UInt64) async throws {
        let name = await name(of: claim, by: event.device)
        await output.end(claim)
        let size = event.bytes > 0 ? " (\(HumanUnits.bytes(event.bytes)))" : ""
        try await output.tell("continued", Self.members(event, claim), "continued by \(name)\(size)")
    }

    func failed(_ failure: WireFailure, claim: UInt64) async throws {
        let name = await name(of: claim, by: failure.device)
        await output.end(claim)
        let who = name.isEmpty ? "a device" : name
        try await output.tell(
            "failed", Self.members(failure, claim), "\(who) did not get it: \(SafeText.sentence(failure.message))")
    }

    /// The transfer to a device was cut. The device goes on by itself, so its transfer keeps its name.
    func interrupted(_ cause: WireFailure, claim: UInt64) async throws {
        let name = await name(of: claim, by: cause.device)
        await output.pause(claim)
        try await output.tell(
            "interrupted", Self.members(cause, claim),
            "\(name) stopped receiving: \(SafeText.sentence(cause.message)); waiting for it to go on")
    }

    func nodeLost() async throws {
        await output.removeAll()
        try await output.tell(
            "nodeLost", [], "the node has stopped: nothing is offered until one runs again; ^C ends the wait")
    }

    /// - Parameter transfers: devices that took the activity over before, and are still sent its document.
    func withdrawn(_ id: [UInt8], stillSent transfers: [WireTransfer] = []) async throws {
        await output.removeAll()
        let rest = transfers.map { "\n" + TransferRendering.stillSent($0) }.joined()
        try await output.tell(
            "withdrawn",
            [.text("id", ListedActivity.text(ofID: id))] + TransferRendering.members(ofStillSent: transfers),
            "withdrawn" + (rest.isEmpty ? "" : ": no other device can take it now" + rest))
    }

    private func name(of claim: UInt64, by device: String) async -> String {
        await output.name(of: claim, by: SafeText.escaped(device))
    }

    private static func device(_ name: String, _ claim: UInt64) -> [JSONMember] {
        [.text("device", name), .count("claim", claim)]
    }

    private static func members(_ event: WireOfferEvent.Taken, _ claim: UInt64) -> [JSONMember] {
        device(event.device, claim) + [.text("deviceID", event.deviceID), .count("bytes", event.bytes)]
    }

    private static func members(_ failure: WireFailure, _ claim: UInt64) -> [JSONMember] {
        device(failure.device, claim) + [
            .text("code", CommandError(HandoffError(failure)).code), .text("message", failure.message),
        ]
    }
}
