// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// A half-typed item of ShopSnap that more than one device takes.
@Suite(.serialized, .lab, .timeLimit(.minutes(3)))
struct LabSharedItemTests {
    /// Three hosts, each with a ShopSnap in its terminal.
    private struct Scene {
        let lab: HandoffLab
        let laptop, desktop, tablet: LabTerminal

        init(_ lab: HandoffLab) async throws {
            self.lab = lab
            (laptop, desktop, tablet) = (LabTerminal(lab, 1), LabTerminal(lab, 2), LabTerminal(lab, 3))
            _ = try await lab.startNodes()
            for terminal in [laptop, desktop, tablet] {
                try await terminal.open("shopsnap")
                try await terminal.shows("The list is empty", "connected to the node")
            }
        }

        /// Gives the desktop the laptop's item, and stops the program there before it continues.
        ///
        /// - Returns: the accept, and the program, which is stopped.
        func giveToDesktop() async throws -> (accept: HostCommand, program: Int32) {
            let offered = try await laptopsItem(on: 2)
            let programs = (
                origin: try await laptop.process("shopsnap"), continuing: try await desktop.process("shopsnap")
            )
            // Stopped between its two answers. The second waits for the laptop.
            kill(programs.origin, SIGSTOP)
            let accept = try lab.start(2, "accept", offered, "--json")
            try await desktop.shows("A list is on its way")
            kill(programs.continuing, SIGSTOP)
            kill(programs.origin, SIGCONT)
            try await accept.event("payload")
            return (accept, programs.continuing)
        }

        /// Its id, as a host lists it. Other activities may be listed too.
        private func laptopsItem(on host: Int) async throws -> String {
            let line = try await lab.watch(host).program.line(within: .seconds(40)) { line in
                guard let event = LabEvent(line), event.event != "removed" else { return false }
                return event.title == "Shopping list: an item" && event.device == "laptop"
            }
            return try #require(LabEvent(line.text)?.id)
        }

        func acceptOnTablet() async throws {
            let accepted = try await lab.run(3, "accept", laptopsItem(on: 3))
            #expect(accepted.status == 0, "\(accepted.errors)")
        }
    }

    @Test("A device that goes on with an older state of the item takes nothing; the one that has all of it takes it")
    func olderFirst() async throws {
        let lab = try await HandoffLab(["laptop", "desktop", "tablet"])
        defer { lab.down() }
        let scene = try await Scene(lab)
        try await scene.laptop.type("oat m")
        try await scene.laptop.shows("Add: oat m")
        let given = try await scene.giveToDesktop()
        try await scene.laptop.type("ilk")
        try await scene.laptop.shows("Add: oat milk")
        kill(given.program, SIGCONT)
        #expect(try await given.accept.end().status == 0)
        try await scene.desktop.shows("The list has come.", "Add: oat m")
        try await scene.laptop.shows("Continued on desktop.", "Add: oat milk")

        try await scene.acceptOnTablet()
        try await scene.tablet.shows("The list has come.", "Add: oat milk")
        try await scene.laptop.shows("Continued on tablet.")
        #expect(try await !scene.laptop.screen().contains("oat milk"))
    }

    @Test("A device that goes on with an older state last brings nothing back, and takes nothing typed since")
    func olderLast() async throws {
        let lab = try await HandoffLab(["laptop", "desktop", "tablet"])
        defer { lab.down() }
        let scene = try await Scene(lab)
        try await scene.laptop.type("sa")
        try await scene.laptop.shows("Add: sa")
        let given = try await scene.giveToDesktop()
        try await scene.laptop.type("lt")
        try await scene.laptop.shows("Add: salt")
        try await scene.acceptOnTablet()
        try await scene.tablet.shows("Add: salt")
        try await scene.laptop.shows("Continued on tablet.")
        #expect(try await !scene.laptop.screen().contains("salt"))
        try await scene.laptop.type("bread")
        try await scene.laptop.shows("Add: bread")
        kill(given.program, SIGCONT)
        #expect(try await given.accept.end().status == 0)
        try await scene.laptop.shows("Continued on desktop.", "Add: bread")
        #expect(try await !scene.laptop.screen().contains("salt"))
    }
}
