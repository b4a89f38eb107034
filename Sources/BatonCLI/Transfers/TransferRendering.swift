// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonDocuments
import BatonMessages

enum TransferRendering {
    static let nothing = "This device offers nothing, no document is on its way, and no part of one is kept."

    /// One table for each kind of thing that is there, with an empty line between two.
    static func lines(_ listings: [WireTransferListing.OneOf_Kind], width: Int, now: Double) -> [String] {
        var offers = Table([
            Table.Column("OFFER"), Table.Column("TITLE", minimum: 12), Table.Column("TYPE", minimum: 8),
            Table.Column("SIZE", alignsRight: true), Table.Column("SINCE", alignsRight: true),
        ])
        var transfers = Table([
            Table.Column("TRANSFER"), Table.Column("TITLE", minimum: 12), Table.Column("DEVICE", minimum: 10),
            Table.Column("STATE"), Table.Column("DONE"), Table.Column("RATE", alignsRight: true),
        ])
        var parts = Table([
            Table.Column("KEPT PART"), Table.Column("TITLE", minimum: 12), Table.Column("FROM", minimum: 8),
            Table.Column("DONE"), Table.Column("AGE", alignsRight: true), Table.Column("FOLDER", minimum: 12),
        ])
        let names = DeviceNames(
            listings.compactMap { listing -> (name: String, id: String)? in
                switch listing {
                case .offer: nil
                case .transfer(let transfer): (transfer.device, transfer.deviceID)
                case .part(let part): (part.device, part.deviceID)
                }
            })
        for listing in listings {
            switch listing {
            case .offer(let offer): offers.rows.append(row(of: offer, now: now))
            case .transfer(let transfer): transfers.rows.append(row(of: transfer, names))
            case .part(let part): parts.rows.append(row(of: part, names, now: now))
            }
        }
        let tables = [offers, transfers, parts].filter { !$0.rows.isEmpty }
        return Array(tables.map { $0.lines(width: width) }.joined(separator: [""]))
    }

    private static func row(of offer: WireOwnOffer, now: Double) -> [String] {
        let activity = ListedActivity(offer.activity, device: "", deviceID: "")
        let title = activity.shownTitle + (offer.switchedOff ? " (Handoff is off)" : "")
        let size = activity.size.map(HumanUnits.bytes) ?? "-"
        return [
            activity.shortID, title, SafeText.escaped(activity.type), size, Moment.age(of: activity.since, now: now),
        ]
    }

    private static func row(of transfer: WireTransfer, _ names: DeviceNames) -> [String] {
        let device = names.shown(transfer.device, transfer.deviceID)
        return [
            shortID(transfer.id), title(transfer.title),
            transfer.direction == .sending ? "to \(device)" : "from \(device)",
            transfer.state.name, done(transfer.bytes, of: transfer.total),
            transfer.hasRate ? HumanUnits.rate(Double(transfer.rate)) : "-",
        ]
    }

    private static func row(of part: WireKeptPart, _ names: DeviceNames, now: Double) -> [String] {
        [
            part.id, SafeText.escaped(path: part.name), names.shown(part.device, part.deviceID),
            done(part.bytes, of: part.total), Moment.age(of: part.changed, now: now),
            SafeText.escaped(path: part.folder),
        ]
    }

    /// How far a document is: `43% of 1.2 GB`. It is never all of it: then it would be in place, and not listed.
    private static func done(_ bytes: UInt64, of total: UInt64) -> String {
        let percent = total == 0 ? 0 : min(99, Int(Double(bytes) / Double(total) * 100))
        return "\(percent)% of \(HumanUnits.bytes(total))"
    }

    private static func title(_ title: String) -> String { title.isEmpty ? "(no title)" : SafeText.escaped(title) }

    private static func shortID(_ id: some Collection<UInt8>) -> String {
        String(ListedActivity.text(ofID: Array(id)).prefix(8))
    }

    // MARK: What was done

    /// What to say of a transfer that was cancelled.
    static func cancelled(_ transfer: WireTransfer, offers: [WireOwnOffer]) -> [String] {
        let (title, device) = (title(transfer.title), SafeText.escaped(transfer.device))
        guard transfer.direction == .sending else {
            guard transfer.bytes > 0 else { return ["cancelled: \(title) from \(device); nothing of it had come"] }
            return [
                "cancelled: \(title) from \(device); \(HumanUnits.bytes(transfer.bytes)) of it are kept",
                "`baton accept` goes on from there; `baton transfers` shows the part and how to delete it",
            ]
        }
        let isOffered = offers.contains { $0.activity.id == transfer.activityID }
        return ["cancelled: \(title) to \(device), which keeps what has come"]
            + (isOffered ? ["it is still offered: `baton withdraw \(shortID(transfer.activityID))` ends that"] : [])
    }

    /// What to say of a transfer that goes on though its offer was withdrawn.
    static func stillSent(_ transfer: WireTransfer) -> String {
        "\(SafeText.escaped(transfer.device)) still gets it (\(done(transfer.bytes, of: transfer.total))):"
            + " `baton transfers cancel \(shortID(transfer.id))`"
    }

    // MARK: JSON

    static func json(_ listing: WireTransferListing.OneOf_Kind) -> String {
        let (entry, members) =
            switch listing {
            case .offer(let offer): ("offer", members(of: offer))
            case .transfer(let transfer): ("transfer", members(of: transfer))
            case .part(let part): ("keptPart", members(of: part))
            }
        return ([.text("entry", entry)] + members).line
    }

    private static func members(of offer: WireOwnOffer) -> [JSONMember] {
        ListedActivity(offer.activity, device: "", deviceID: "").members.filter { !$0.name.hasPrefix("device") } + [
            .text("application", offer.application.isEmpty ? nil : offer.application),
            .text("handoff", offer.switchedOff ? "off" : "on"),
        ]
    }

    static func members(of transfer: WireTransfer) -> [JSONMember] {
        [
            .text("id", ListedActivity.text(ofID: Array(transfer.id))),
            .text("direction", transfer.direction == .sending ? "sending" : "receiving"),
            .text("state", transfer.state.name), .text("title", transfer.title), .text("device", transfer.device),
            .text("deviceID", transfer.deviceID),
            .text("activity", ListedActivity.text(ofID: Array(transfer.activityID))), .count("bytes", transfer.bytes),
            .count("total", transfer.total), .count("rate", transfer.hasRate ? transfer.rate : nil),
        ] + (transfer.folder.isEmpty ? [] : JSONMember.path("folder", Array(transfer.folder)))
    }

    /// The member of an event that tells what goes on though its offer was withdrawn; none where nothing does.
    static func members(ofStillSent transfers: [WireTransfer]) -> [JSONMember] {
        transfers.isEmpty ? [] : [.objects("transfers", transfers.map(members))]
    }

    static func members(of part: WireKeptPart) -> [JSONMember] {
        [.text("id", part.id)] + JSONMember.path("title", Array(part.name)) + [
            .text("device", part.device), .text("deviceID", part.deviceID), .count("bytes", part.bytes),
            .count("total", part.total), .time("changed", part.changed),
        ] + JSONMember.path("folder", Array(part.folder))
    }
}

extension WireTransfer.State {
    fileprivate var name: String {
        if case .UNRECOGNIZED = self { "running" } else { "\(self)" }
    }
}

extension NodeClient {
    /// The activities that this device offers, the current one first.
    func offers() async throws(HandoffError) -> [WireOwnOffer] {
        try await transfers().compactMap { if case .offer(let offer) = $0 { offer } else { nil } }
    }

    /// The transfers of an activity from this device to others, also if it is no longer offered.
    func transfers(of activity: [UInt8]) async throws(HandoffError) -> [WireTransfer] {
        try await transfers().compactMap {
            guard case .transfer(let transfer) = $0, Array(transfer.activityID) == activity else { return nil }
            return transfer.direction == .sending ? transfer : nil
        }
    }
}
