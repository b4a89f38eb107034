// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages
import BatonProtocol
import BatonTestSupport
import BatonTransport
import FoundationEssentials
import Subprocess
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonCLI

/// The output of `baton transfers`, and the sentences of other commands about transfers.
@Suite("Transfers")
struct TransfersTests {
    private static let offer = WireOwnOffer.with { $0.activity = Script.listing(0x3F, kind: .document).activity }

    private static func transfer(_ direction: WireTransfer.Direction, rate: UInt64?) -> WireTransfer {
        .with {
            $0.id = Data(repeating: direction == .sending ? 0xAB : 0xCD, count: 16)
            $0.direction = direction
            $0.state = rate == nil ? .waiting : .running
            $0.title = "Holidays by the sea, part one.mkv"
            $0.device = "desktop"
            $0.deviceID = "desktopid"
            $0.activityID = Data(repeating: 0x3F, count: 16)
            $0.bytes = 430_000_000
            $0.total = 1_000_000_000
            if let rate { $0.rate = rate }
            if direction == .receiving { $0.folder = Data("/home/me/in".utf8) }
        }
    }

    private static let part = WireKeptPart.with {
        $0.id = "k3x7abcd"
        $0.name = Data("film.mkv".utf8)
        $0.device = "laptop"
        $0.deviceID = "laptopid"
        $0.folder = Data("/home/me/Downloads/of/this/summer/and/of/the/last".utf8)
        $0.bytes = 120_000_000
        $0.total = 1_000_000_000
        $0.changed = 940
    }

    private static let listings: [WireTransferListing.OneOf_Kind] = [
        .offer(offer), .transfer(transfer(.sending, rate: 110_000_000)), .transfer(transfer(.receiving, rate: nil)),
        .part(part),
    ]

    /// A node that lists these things and withdraws the offer.
    private static func node(_ listings: [WireTransferListing.OneOf_Kind]) throws -> ScriptedNode {
        try ScriptedNode { request, stream, _ in
            switch request {
            case .transfers:
                try await stream.respond(.transfers(.init()))
                for listing in listings {
                    try await stream.send(record: WireTransferListing.with { $0.kind = listing })
                }
            case .withdraw(let request):
                guard request.idPrefix == ListedActivity.text(ofID: Array(offer.activity.id)) else {
                    throw HandoffError(
                        .noSuchActivity, "this device offers no activity with the id \(request.idPrefix)")
                }
                try await stream.respond(
                    .withdraw(
                        .with {
                            $0.activityID = offer.activity.id
                            $0.title = offer.activity.title
                        }))
            default: throw HandoffError(.unsupported, "not in this script")
            }
            await stream.finish()
        }
    }

    @Test("The tables fit 80 columns")
    func tables() {
        let lines = TransferRendering.lines(Self.listings, width: 80, now: 1000)
        for line in lines { #expect(DisplayWidth.of(line) <= 80, "\(line)") }
        #expect(lines.filter(\.isEmpty).count == 2)
        #expect(lines[0].hasPrefix("OFFER ") && lines[1].hasPrefix("3f3f3f3f  Note 63"), "\(lines)")
        #expect(lines[4].hasPrefix("abababab  Holidays") && lines[4].contains("to desktop"), "\(lines)")
        #expect(lines[5].contains("from desktop") && lines[5].contains("waiting") && lines[5].hasSuffix("-"))
        #expect(lines[8].hasPrefix("k3x7abcd   film.mkv  laptop"), "\(lines)")
    }

    @Test("JSON has a line for each thing")
    func json() async throws {
        let node = try Self.node(Self.listings)
        let listed = try await BuiltCommand.run(["transfers", "--json"], home: node.folder)
        let entries = try listed.output.split(separator: "\n").map { try JSONParser.parse(String($0)) }
        #expect(entries.map { $0["entry"] } == ["offer", "transfer", "transfer", "keptPart"])
        #expect(entries.map { $0["direction"] } == [nil, "sending", "receiving", nil])
        #expect(entries.map { $0["rate"] } == [nil, .integer(110_000_000), .null, nil])
        #expect(entries[2]["folder"] == "/home/me/in" && entries[3]["bytes"] == .integer(120_000_000))
    }

    @Test("withdraw without an id, or with an unknown one, names what is offered")
    func withdrawn() async throws {
        let node = try Self.node(Self.listings)
        let bare = try await BuiltCommand.run(["withdraw"], home: node.folder)
        #expect(bare.status == ExitStatus.usage.rawValue)
        #expect(bare.errors.contains("3f3f3f3f  Note 63"), "\(bare.errors)")
        let unknown = try await BuiltCommand.run(["withdraw", "77"], home: node.folder)
        #expect(unknown.status == ExitStatus.noSuchActivity.rawValue)
        #expect(unknown.errors.contains("3f3f3f3f  Note 63"), "\(unknown.errors)")
        #expect(!unknown.errors.contains("baton activities"), "it does not list own offers")
        let known = try await BuiltCommand.run(["withdraw", "3f"], home: node.folder)
        #expect(known.status == 0 && known.errors.contains("withdrawn: Note 63"))
        #expect(known.errors.contains("desktop still gets it") && known.errors.contains("cancel abababab"))
        let titled = try await BuiltCommand.run(["withdraw", "note 6"], home: node.folder)
        #expect(titled.status == 0 && titled.errors.contains("withdrawn: Note 63"))
        let nothing = try Self.node([])
        let empty = try await BuiltCommand.run(["withdraw"], home: nothing.folder)
        #expect(empty.errors.contains("this device offers nothing"), "\(empty.errors)")
    }

    @Test("An offer that ends says which device is still sent its document", arguments: [false, true])
    func ended(isSent: Bool) async throws {
        let node = try ScriptedNode { request, stream, _ in
            switch request {
            case .offer:
                try await stream.respond(.offer(.with { $0.activityID = Data(repeating: 0x3F, count: 16) }))
                while try await stream.read() != nil {}
                try await stream.send(record: WireOfferEvent.with { $0.withdrawn = .init() })
            case .transfers:
                try await stream.respond(.transfers(.init()))
                // The other one is of another direction.
                for listing in Self.listings.dropFirst(isSent ? 1 : 2) {
                    try await stream.send(record: WireTransferListing.with { $0.kind = listing })
                }
            default: throw HandoffError(.unsupported, "not in this script")
            }
            await stream.finish()
        }
        let errors = try await Self.interrupted(["offer", "--url", "https://example.org"], node, when: "offering")
        #expect(errors.contains("withdrawn") && errors.contains("desktop still gets it") == isSent, "\(errors)")
    }

    @Test("A command that watches says once that the responder is away, and once that it is back")
    func responder() async throws {
        let node = try ScriptedNode { request, stream, _ in
            switch request {
            case .activities:
                try await stream.respond(.activities(.init()))
                _ = try await stream.read()
            case .status(let request):
                #expect(request.watch)
                try await stream.respond(.status(.init()))
                // The reason changes, and that it is away does not.
                for responder in ["unavailable: no bus", "unavailable: no Avahi", "running"] {
                    try await stream.send(
                        record: WireStatusResponse.with {
                            $0.responder = responder
                            $0.isUnannounced = responder != "running"
                        })
                }
                _ = try await stream.read()
            default: throw HandoffError(.unsupported, "not in this script")
            }
            await stream.finish()
        }
        let errors = try await Self.interrupted(["activities", "--watch"], node, when: "the responder is back")
        #expect(errors.split(separator: "\n").count == 2, "\(errors)")
        #expect(errors.contains("no bus") && !errors.contains("no Avahi"), "\(errors)")
    }

    /// Runs a command and presses ^C when its standard error has a certain text.
    ///
    /// - Returns: what it said on standard error.
    private static func interrupted(
        _ arguments: [String], _ node: ScriptedNode, when text: String
    ) async throws -> String {
        try await Subprocess.run(
            .path(BuiltCommand.path), arguments: Arguments(arguments),
            environment: .inherit.updating(["BATON_HOME": node.folder]), input: .none, output: .discarded,
            error: .sequence
        ) { execution in
            var said: [UInt8] = []
            var isSent = false
            for try await chunk in execution.standardError {
                said += chunk.withUnsafeBytes { Array($0) }
                guard !isSent, String(decoding: said, as: UTF8.self).contains(text) else { continue }
                isSent = true
                try execution.send(signal: .interrupt)
            }
            return String(decoding: said, as: UTF8.self)
        }.closureResult
    }
}
