// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonDocuments
import BatonMessages

struct ListedActivity: Sendable, Equatable {
    let id: [UInt8]
    let kind: WireActivityKind
    let type: String
    let title: String
    let device: String
    let deviceID: String
    /// Bytes of the document; `nil` if there is none.
    let size: UInt64?
    /// Seconds since 1970.
    let since: UInt64

    init(_ listing: WireActivityListing) {
        self.init(listing.activity, device: listing.device, deviceID: listing.deviceID)
    }

    init(_ summary: WireActivitySummary, device: String, deviceID: String) {
        id = [UInt8](summary.id)
        kind = summary.kind
        type = summary.type
        title = summary.title
        self.device = device
        self.deviceID = deviceID
        size = summary.kind == .document ? summary.documentSize : nil
        since = summary.since
    }

    var idText: String { Self.text(ofID: id) }

    /// The first eight digits of the id: enough to tell one person's activities apart.
    var shortID: String { String(idText.prefix(8)) }

    static func text(ofID id: [UInt8]) -> String {
        id.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// The title, safe to show; `(no title)` if there is none.
    var shownTitle: String { title.isEmpty ? "(no title)" : SafeText.escaped(title) }

    var members: [JSONMember] {
        [
            .text("id", idText), .text("kind", kind.name), .text("type", type), .text("title", title),
            .text("device", device), .text("deviceID", deviceID), .count("size", size), .time("since", since),
        ]
    }

    static let table = Table([
        Table.Column("ID"), Table.Column("TITLE", minimum: 12), Table.Column("TYPE", minimum: 8),
        Table.Column("SIZE", alignsRight: true), Table.Column("FROM", minimum: 8),
        Table.Column("SINCE", alignsRight: true),
    ])

    /// The activity as a row of ``table``.
    ///
    /// - Parameter shownDevice: the name of the device, safe to show.
    func row(from shownDevice: String, now: Double) -> [String] {
        [
            shortID, shownTitle, SafeText.escaped(type), size.map(HumanUnits.bytes) ?? "-",
            shownDevice, Moment.age(of: since, now: now),
        ]
    }
}

extension WireActivityKind {
    var name: String {
        if case .UNRECOGNIZED = self { "application" } else { "\(self)" }
    }
}
