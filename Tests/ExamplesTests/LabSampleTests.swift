// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

@testable import MonkeyBrowser
@testable import ShopSnap

/// The sample applications between two hosts, each with a terminal that is typed into and looked at.
@Suite(.serialized, .lab, .timeLimit(.minutes(5)))
struct LabSampleTests {
    /// Two hosts with nodes. The second one's desktop has the samples installed, and its terminal is opened by it.
    private func scene() async throws -> (lab: HandoffLab, laptop: LabTerminal, desktop: LabTerminal) {
        let lab = try await HandoffLab()
        let (laptop, desktop) = (LabTerminal(lab, 1), LabTerminal(lab, 2))
        _ = try await lab.startNode(1)
        let programs = try desktop.desktop().path
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        _ = try await lab.startNode(2, wrapper: ["env", "PATH=\(programs):\(path)"])
        for sample in ["ShopSnap", "MonkeyBrowser"] {
            let registered = try await lab.run(2, "applications", "register", Self.manifest(sample).path)
            #expect(registered.status == 0, "\(registered.errors)")
        }
        for host in 1...2 { try await lab.awaitPeers(1, on: host) }
        return (lab, laptop, desktop)
    }

    private static func manifest(_ sample: String) -> URL {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Sources/Examples/\(sample)/Info.plist")
    }

    @Test("The manifests say what the code says")
    func manifests() throws {
        func types(_ sample: String) throws -> [String] {
            let data = try Data(contentsOf: Self.manifest(sample))
            let list = try PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any]
            return list?["NSUserActivityTypes"] as? [String] ?? []
        }
        #expect(try types("ShopSnap") == [Shop.viewingType, Shop.editingType])
        #expect(try types("MonkeyBrowser") == TabName.allCases.map(\.activityType))
    }

    @Test("A half-typed item goes on at the same character in a ShopSnap that did not run, and the list comes back")
    func shopsnap() async throws {
        let (lab, laptop, desktop) = try await scene()
        defer { lab.down() }
        try await laptop.open("shopsnap")
        try await laptop.shows("The list is empty", "connected to the node")
        try await laptop.type("Milk")
        try await laptop.press("Enter")
        try await laptop.type("Bread")
        try await laptop.press("Enter")
        try await laptop.type("oat ilk")
        try await laptop.press("Left", "Left", "Left")
        try await laptop.shows("2 to buy, 0 bought", "Add: oat ilk")

        let watch = try lab.watch(2)
        let offered = try await watch.listed("Shopping list: an item")
        let accepted = try await lab.run(2, "accept", offered.id ?? "")
        #expect(accepted.status == 0, "\(accepted.errors)")
        try await desktop.shows("Milk", "Bread", "Add: oat ilk", "2 to buy")
        #expect(try await desktop.cursor().hasPrefix("10,"))
        try await laptop.shows("Continued on desktop.")
        #expect(try await !laptop.screen().contains("oat ilk"))

        // The item is finished there, and another one is bought.
        try await desktop.type("m")
        try await desktop.press("Enter")
        try await desktop.shows("oat milk", "3 to buy")
        try await desktop.press("Up")
        try await desktop.type(" ")
        try await desktop.shows("✓ Bread", "2 to buy, 1 bought")

        // Back into the ShopSnap that still runs: merged, and nothing twice. The laptop bought an item meanwhile.
        try await laptop.press("Up", "Up")
        try await laptop.type(" ")
        try await laptop.shows("✓ Milk")
        let before = try await laptop.process("shopsnap")
        let list = try await lab.watch(1).listed("Shopping list")
        let back = try await lab.run(1, "accept", list.id ?? "")
        #expect(back.status == 0, "\(back.errors)")
        try await laptop.shows("✓ Milk", "✓ Bread", "○ oat milk", "1 to buy, 2 bought", "The list has come.")
        #expect(try await laptop.process("shopsnap") == before)

        // The activity leaves the other device's list when ShopSnap ends, and the list is kept.
        try await desktop.press("C-c")
        try await eventually("the desktop's list is gone") {
            try await !lab.run(1, "activities", "--json").lines.joined().contains("Shopping list")
        }
        try await laptop.press("C-c")
        try await laptop.shows("ended 0")
        try await laptop.close()
        try await laptop.open("shopsnap")
        try await laptop.shows("✓ Milk", "✓ Bread", "○ oat milk")
    }

    @Test("The terminal is as it was after every end, the list survives a crash, and the node may come and go")
    func ends() async throws {
        let lab = try await HandoffLab(["laptop"])
        defer { lab.down() }
        let terminal = LabTerminal(lab, 1)
        for (number, end) in [("C-c", Int32(0)), ("", SIGTERM), ("", SIGHUP), ("", SIGSEGV)].enumerated() {
            try await terminal.open("shopsnap")
            try await terminal.shows("no node: stays on this device")
            // The items of earlier runs are here.
            if number > 0 { try await terminal.shows("Item 0", "Item \(number - 1)") }
            try await terminal.type("Item \(number)")
            try await terminal.press("Enter")
            try await terminal.shows("○ Item \(number)")
            #expect(try await terminal.isTaken())
            if end.0.isEmpty {
                kill(try await terminal.process("shopsnap"), end.1)
            } else {
                try await terminal.press(end.0)
            }
            try await terminal.shows(end.1 == SIGSEGV ? "ended 139" : "ended 0", " icanon ", " echo ")
            #expect(try await !terminal.isTaken())
            try await terminal.close()
        }

        // Killed at once after each key: all that was on the screen is kept.
        for number in 4..<8 {
            try await terminal.open("shopsnap")
            try await terminal.shows("Item \(number - 1)")
            try await terminal.type("Item \(number)")
            try await terminal.press("Enter")
            try await terminal.shows("○ Item \(number)")
            kill(try await terminal.process("shopsnap"), SIGKILL)
            try await terminal.close()
        }

        // In a shell, with nodes that come and crash.
        try await terminal.openShell()
        try await terminal.shows("prompt>")
        try await terminal.type(Lab.product("shopsnap"))
        try await terminal.press("Enter")
        try await terminal.shows("○ Item 7", "no node")
        try await terminal.resize(columns: 40, rows: 12)
        try await terminal.shows("› ○ Item 0", "Add:")
        for _ in 0..<2 {
            let node = try await lab.startNode(1).command
            try await terminal.resize(columns: 80, rows: 24)
            try await terminal.shows("connected to the node")
            try await node.end(by: SIGKILL)
            try await terminal.shows("no node")
        }
    }

    @Test("A tab goes on in a browser that did not run: preparing while it is on its way, then the page at its place")
    func monkeybrowser() async throws {
        let (lab, laptop, desktop) = try await scene()
        defer { lab.down() }
        try await laptop.open("monkeybrowser")
        try await laptop.shows("[Weather]", "connected to the node")
        try await laptop.press("Tab", "Tab", "Enter")
        try await laptop.shows("[Coffee Break]", "Arabica")
        try await laptop.press("Enter", "Down", "Down", "Down", "Down", "Down")
        try await laptop.type("half a ote")
        try await laptop.press("Left", "Left", "Left")
        try await laptop.shows("Chapter 6:", "Note: half a ote")

        let offered = try await lab.watch(2).listed("A coffee a day")
        #expect(offered.type == "org.baton.monkeybrowser.coffeebreak")
        // The origin answers late. The user of the desktop sees that a list is on its way, and cancels.
        let origin = try await laptop.process("monkeybrowser")
        kill(origin, SIGSTOP)
        let cancelled = try lab.start(2, "accept", offered.id ?? "")
        try await desktop.showed("Preparing Coffee Break")
        #expect(try await cancelled.end(by: SIGINT).status == 130)
        try await desktop.shows("[Coffee Break]", "connected to the node")
        try await eventually("nothing is on its way") { try await !desktop.screen().contains("Preparing") }
        let accept = try lab.start(2, "accept", offered.id ?? "")
        try await desktop.shows("Preparing Coffee Break")
        kill(origin, SIGCONT)
        let accepted = try await accept.end()
        #expect(accepted.status == 0, "\(accepted.errors)")
        try await desktop.shows("[Coffee Break]", "https://coffee.example.org/", "Chapter 6:", "Note: half a ote")
        #expect(try await !desktop.screen().contains("Chapter 5:"))
        try await laptop.showed("Coffee Break goes on at desktop.")
        for terminal in [laptop, desktop] {
            #expect(!terminal.hasShown("Not handed over") && !terminal.hasShown("Nothing came"))
        }
        // At the same character of the form. From there it goes back to the first device.
        try await desktop.type("n")
        try await desktop.press("Up")
        try await desktop.shows("Chapter 5:", "Note: half a note")
        let back = try await lab.watch(1).listed("A coffee a day")
        let returned = try await lab.run(1, "accept", back.id ?? "")
        #expect(returned.status == 0, "\(returned.errors)")
        try await laptop.shows("[Coffee Break]", "Chapter 5:", "Note: half a note")
        // With the history as well.
        try await desktop.press("Escape")
        try await desktop.shows("Arabica")

        // The browser has ended: the page is not offered, and nothing waits for it.
        try await laptop.press("C-c")
        try await laptop.shows("ended 0")
        try await eventually("the laptop's tab is gone") {
            try await !lab.run(2, "activities", "--json").lines.joined().contains("A coffee a day")
        }
    }

    @Test("A tab opens as a web page in the browser of a device that has no MonkeyBrowser, and the user sees it go")
    func webPage() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let laptop = LabTerminal(lab, 1)
        _ = try await lab.startNodes()
        let desktop = try LabDesktop(lab)
        try await laptop.open("monkeybrowser")
        try await laptop.shows("[Weather]", "connected to the node")
        try await laptop.press("Tab", "Tab", "Enter")
        try await laptop.shows("[Coffee Break]", "Arabica")
        // The first tab, and the page before this one, may be on the list for a while.
        var offered: LabEvent?
        try await eventually("the page is listed", within: .seconds(40)) {
            offered = try await lab.run(2, "activities", "--json").events.first { $0.title == "Beans" }
            return offered != nil
        }
        let accepted = try await lab.start(2, "accept", offered?.id ?? "", wrapper: desktop.wrapper).end()
        #expect(accepted.status == 0, "\(accepted)")
        #expect(desktop.opened == ["1:https://coffee.example.org/beans"])
        #expect(accepted.errors.contains("opened in Fake Browser"), "\(accepted.errors)")
        try await laptop.shows("Coffee Break goes on at desktop.")
    }
}
