// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

@testable import MonkeyBrowser

/// A note in a page of MonkeyBrowser that goes round three devices.
@Suite(.serialized, .lab, .timeLimit(.minutes(3)))
struct LabSharedNoteTests {
    @Test("A note comes home from whoever has gone on with it, and takes the place of none that was typed alone")
    func round() async throws {
        let lab = try await HandoffLab(["laptop", "desktop", "tablet"])
        defer { lab.down() }
        _ = try await lab.startNodes()
        let (laptop, desktop, tablet) = (LabTerminal(lab, 1), LabTerminal(lab, 2), LabTerminal(lab, 3))
        for terminal in [laptop, desktop, tablet] {
            try await terminal.open("monkeybrowser")
            try await terminal.shows("[Weather]", "connected to the node")
        }
        func accept(on host: Int, from device: String) async throws {
            let line = try await lab.watch(host).program.line(within: .seconds(40)) { line in
                guard let event = LabEvent(line), event.event != "removed" else { return false }
                return event.type == TabName.coffeeBreak.activityType && event.device == device
            }
            let accepted = try await lab.run(host, "accept", try #require(LabEvent(line.text)?.id))
            #expect(accepted.status == 0, "\(accepted.errors)")
        }
        try await laptop.press("Tab", "Tab")
        try await laptop.shows("[Coffee Break]")
        try await laptop.type("abc")
        try await laptop.shows("Note: abc")

        try await accept(on: 2, from: "laptop")
        try await desktop.shows("[Coffee Break]", "Note: abc")
        try await desktop.type("d")
        try await desktop.shows("Note: abcd")
        try await accept(on: 3, from: "desktop")
        try await tablet.shows("[Coffee Break]", "Note: abcd")
        try await tablet.type("e")
        try await tablet.shows("Note: abcde")
        // Home by the same way, and from the device that has most of it.
        try await accept(on: 1, from: "desktop")
        try await laptop.shows("Note: abcd")
        try await accept(on: 1, from: "tablet")
        try await laptop.shows("Note: abcde")
        #expect(!laptop.hasShown("stays"))

        try await desktop.type("x")
        try await desktop.shows("Note: abcdx")
        try await accept(on: 2, from: "tablet")
        try await desktop.shows("What you have typed into it stays.", "Note: abcdx")
    }
}
