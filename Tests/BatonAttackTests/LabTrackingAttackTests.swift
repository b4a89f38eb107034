// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonTestSupport
import Foundation
import Testing

extension LabAttackTests {
    /// Following a device from one period, or one network, to the next: Martin et al., PoPETs 2019, section 5.2;
    /// Celosia and Cunche, PoPETs 2020, section 4.
    ///
    /// In the other suite, so that only one lab of theirs is there at a time.
    @Suite(.timeLimit(.minutes(3)))
    struct LabTrackingAttackTests {
        /// All that devices of everybody say: the service's type, and an SRV record that is the same for all.
        private static let constant: Set<Capture.Word> = [
            .label("_baton"), .label("_tcp"), .data(type: 33, [0, 0, 0, 0, 0, 9]),
        ]

        @Test("Two periods that were captured share what Avahi publishes, and nothing else")
        func periods() async throws {
            let lab = try await HandoffLab(["laptop", "desktop"], members: 1)
            defer { lab.down() }
            // The messages of Avahi's own, when it starts and when it ends.
            let silence = try await Tap(lab, host: 1)
            for action in ["stop", "start"] { try lab.lab.command("avahi", "1", action) }
            try await eventually("Avahi has announced its host") {
                try silence.now().messages.contains { $0.contains(.label("host1")) }
            }
            let ofAvahi = try await silence.end().messages.reduce(into: Self.constant) { $0.formUnion($1) }

            try await attack("following a device by what two captures share") { defence in
                // Long enough to say something in each period, and as good as never.
                let rotation = defence.isOn ? "6000" : "3600000"
                let tap = try await Tap(lab, host: 1)
                let node = try lab.startProgram(1, [Lab.product("node-probe"), "--rotation", rotation])
                try await node.event("ready")
                let first = try await offering("First", in: lab, until: tap) { $0.records.count > 1 }
                let old = try #require(first.records.last?.instance)
                if defence.isOn {
                    try await eventually("there is another name") {
                        try tap.now().records.contains { $0.instance != old }
                    }
                    // It withdraws the old one as soon as the other one is seen.
                    try await eventually("the old name has gone") {
                        let messages = try tap.now().messages
                        let withdrawal = messages.lastIndex { $0.contains(.label(old)) } ?? 0
                        return messages[withdrawal...].contains { !$0.isDisjoint(with: [.label("_baton")]) }
                    }
                }
                let second = try await Tap(lab, host: 1)
                _ = try await offering("Second", in: lab, until: second) { capture in
                    let own = capture.messages.filter { !$0.contains(.label(old)) || !defence.isOn }
                    return own.contains { $0.contains(where: \.isSealedRecord) }
                }
                node.program.closeInput()
                #expect(try await node.end().status == 0, "\(node.errors)")
                _ = try await tap.end()
                // An observer that sees both names at once, at the change, can link them. That moment is in neither
                // period. On a busy machine the first capture may have seen the next name come.
                let late = try await second.end()
                let names = Set((first.records + late.records).map { Capture.Word.label($0.instance) })
                let (own, others) = (Set([Capture.Word.label(old)]), names.subtracting([.label(old)]))
                let earlier = defence.isOn ? first.messages.filter { $0.isDisjoint(with: others) } : first.messages
                let later = defence.isOn ? late.messages.filter { $0.isDisjoint(with: own) } : late.messages
                #expect(!Self.words(of: earlier).isEmpty && !Self.words(of: later).isEmpty)
                // Avahi says the host's name on its own, so that it is subtracted below; what Baton says has it
                // nowhere.
                for message in earlier + later where !message.isDisjoint(with: names) {
                    #expect(!message.contains(.label("host1")), "\(message)")
                }
                let shared = Self.words(of: earlier).intersection(Self.words(of: later)).subtracting(ofAvahi)
                if defence.isOn { #expect(shared.isEmpty, "\(shared)") }
                return Outcome(succeeds: !shared.isEmpty)
            }
        }

        /// How a device loses its name before the period is over.
        enum Loss: String, CaseIterable {
            case restarted = "Avahi is started anew"
            case taken = "somebody else has the name"
            case successorTaken = "somebody else has the name that is to follow"
        }

        @Test("A name that is lost shares nothing with the one that takes its place", arguments: Loss.allCases)
        func lost(_ loss: Loss) async throws {
            try await attack("following a device by what it says under two names, where \(loss.rawValue)") {
                let texts = try await texts(after: loss)
                let sealed = texts.mapValues { $0.reduce(into: Set()) { $0.formUnion(Self.parts(of: $1)) } }
                return Outcome(
                    succeeds: sealed.contains { name, own in
                        sealed.contains { other, parts in other > name && !own.isDisjoint(with: parts) }
                    })
            }
        }

        /// The records of a device under each of its names, the ones that it loses and the one that takes their place.
        private func texts(after loss: Loss) async throws -> [String: Set<[UInt8]>] {
            let lab = try await HandoffLab(["laptop", "stranger"], members: 1)
            defer { lab.down() }
            let tap = try await Tap(lab, host: 1)
            try lab.lab.command("avahi", "2", "stop")
            let number = loss == .successorTaken ? "1" : "0"
            let claimant = try lab.startProgram(
                2, ["python3", "-c", HostilePrograms.claimant, "10.77.0.2", loss == .restarted ? "-1" : number])
            try await claimant.program.line { $0 == "ready" }
            _ = try await lab.startNode(1)
            try await eventually("it is announced") { try !tap.now().textsByName.isEmpty }
            switch loss {
            case .restarted:
                for action in ["kill", "start"] { try lab.lab.command("avahi", "1", action) }
            case .taken: break
            case .successorTaken: try await changeNetwork(of: lab, "add")
            }
            let count = loss == .successorTaken ? 3 : 2
            try await eventually("there is another name", within: .seconds(60)) {
                try tap.now().textsByName.count == count
            }
            // What is said from now on is said under that name alone.
            let before = try tap.now().textsByName
            _ = try await offering("Later", in: lab, until: tap) { $0.textsByName != before }
            #expect(claimant.program.lines.contains { $0.hasPrefix("taken ") } == (loss != .restarted))
            try await claimant.end(by: SIGKILL)
            return try await tap.end().textsByName
        }

        /// Gives the first host another address, or takes it away.
        private func changeNetwork(of lab: HandoffLab, _ action: String) async throws {
            let change = try lab.startProgram(1, ["ip", "address", action, "10.78.0.1/24", "dev", "eth0"])
            #expect(try await change.end().status == 0, "\(change.errors)")
        }

        /// Every eight bytes of a sealed record, without the beginning that all of them have.
        private static func parts(of text: [UInt8]) -> Set<[UInt8]> {
            let sealed = text.dropFirst(7)
            return Set((0...(sealed.count - 8)).map { Array(sealed.dropFirst($0).prefix(8)) })
        }

        /// The messages, and every eight bytes of the sealed records, without the beginning that all of them have.
        private static func words(of messages: [Set<Capture.Word>]) -> Set<Capture.Word> {
            messages.reduce(into: []) { words, message in
                words.formUnion(message)
                for case .data(16, let text) in message.filter(\.isSealedRecord) {
                    words.formUnion(parts(of: text).map { .data(type: 16, $0) })
                }
            }
        }

        /// Offers something, and withdraws it when what was captured is enough.
        private func offering(
            _ title: String, in lab: HandoffLab, until tap: Tap, _ isEnough: (Capture) -> Bool
        ) async throws -> Capture {
            let offer = try await lab.offer(1, "--url", "https://example.org/", "--title", title)
            try await eventually("\(title) is announced") { isEnough(try tap.now()) }
            try await offer.command.end(by: SIGTERM)
            return try tap.now()
        }

        @Test("Nobody who scans ports finds one again that he found some periods ago")
        func ports() async throws {
            try await attack("following a device from one network to another by its port") {
                let lab = try await HandoffLab(["laptop", "stranger"], members: 1)
                defer { lab.down() }
                let tap = try await Tap(lab, host: 1)
                _ = try await lab.startNode(1)
                try await eventually("it is announced") { try tap.now().textsByName.count == 1 }
                let first = try await openPorts(in: lab)
                // The last of them is one too many for the first.
                for number in 1...Gate.periodBound {
                    try await changeNetwork(of: lab, number.isMultiple(of: 2) ? "del" : "add")
                    try await eventually("there is another name") { try tap.now().textsByName.count == number + 1 }
                }
                let second = try await openPorts(in: lab)
                _ = try await tap.end()
                // The ports that were announced with the removed address are closed as well.
                #expect(first.count == 1 && second.count == Gate.periodBound / 2)
                #expect(second.contains(try #require(try await lab.status(1)?.port)))
                return Outcome(succeeds: !first.isDisjoint(with: second))
            }
        }

        /// The ports on which the first host takes connections of the second.
        private func openPorts(in lab: HandoffLab) async throws -> Set<Int> {
            let scanner = try lab.startProgram(2, ["python3", "-c", HostilePrograms.scanner, "10.77.0.1"])
            let scanned = try await scanner.end(within: .seconds(60))
            #expect(scanned.status == 0, "\(scanned.errors)")
            return Set(scanned.lines.compactMap { Int($0) })
        }

        @Test("An address that comes or goes begins another period at once")
        func networkChange() async throws {
            try await attack("following a device from one network to the next by its name") {
                let lab = try await HandoffLab(["laptop"])
                defer { lab.down() }
                let tap = try await Tap(lab, host: 1)
                _ = try await lab.startNode(1)
                try await eventually("it is announced") { try tap.now().textsByName.count == 1 }
                for (number, action) in ["add", "del"].enumerated() {
                    try await changeNetwork(of: lab, action)
                    try await eventually("there is another name") { try tap.now().textsByName.count == number + 2 }
                    let before = try tap.now().textsByName
                    _ = try await offering("There \(number)", in: lab, until: tap) { $0.textsByName != before }
                }
                return Outcome(succeeds: try await tap.end().textsByName.count == 1)
            }
        }
    }
}

extension Capture {
    /// The records of devices under each of their names. A name with a number, "name #2", counts as the name itself.
    fileprivate var textsByName: [String: Set<[UInt8]>] {
        records.filter { $0.text.count > 100 }.reduce(into: [:]) {
            $0[String($1.instance.prefix { $0 != " " }), default: []].insert($1.text)
        }
    }
}

extension Capture.Word {
    /// Whether it is the TXT record of a device.
    fileprivate var isSealedRecord: Bool {
        if case .data(16, let text) = self { text.count > 100 } else { false }
    }
}
