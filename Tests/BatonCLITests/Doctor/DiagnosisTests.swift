// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonAccount
import BatonCore
import BatonMessages
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonCLI
@testable import BatonDiscovery
@testable import BatonNode

/// The facts of a machine on which all is well, and one change for each cause.
struct MachineFault: Sendable, CustomTestStringConvertible {
    let cause: Cause
    /// Nil if it is one at which all is well.
    var node: NodeAnswer?
    let change: @Sendable (inout MachineFacts) -> Void

    var testDescription: String { cause.rawValue }

    /// Checks that nobody can answer while the cause is there.
    var hides: Set<Check> {
        [.noAccount, .unusableAccount].contains(cause)
            ? [.node, .limits] : [.noNode, .portTaken].contains(cause) ? [.limits] : []
    }

    private static func unchanged(_: inout MachineFacts) {}

    static let all: [MachineFault] = [
        MachineFault(cause: .noAccount, node: .absent) { $0.accountError = .noAccount },
        MachineFault(cause: .unusableAccount, node: .absent) {
            $0.accountError = .damaged(path: "/state/account", reason: "it is empty")
        },
        MachineFault(cause: .wrongRights) {
            $0.problems.append(
                .problem(.wrongRights, of: "others can use /run/baton", remedy: ["chmod 700 /run/baton"]))
        },
        MachineFault(cause: .diskFull) {
            $0.problems.append(.problem(.diskFull, of: "/state", remedy: ["df -h /state"]))
        },
        MachineFault(cause: .diskReadOnly) {
            $0.problems.append(.problem(.diskReadOnly, of: "/config", remedy: ["sudo mount -o remount,rw /"]))
        },
        MachineFault(cause: .rulesMistake) {
            $0.problems.append(
                .problem(.rulesMistake, of: "/config/accept-policy: line 1", remedy: ["baton policy check"]))
        },
        MachineFault(cause: .handoffOff) { $0.handoff.isOn = false },
        MachineFault(cause: .noNode, node: .absent, change: unchanged),
        MachineFault(cause: .portTaken, node: .absent) { $0.takenPort = 24747 },
        MachineFault(cause: .fewDescriptors, node: .status(.with { $0.lacksDescriptors = true }), change: unchanged),
        MachineFault(cause: .fewWatches) { $0.canWatch = false },
        MachineFault(cause: .noBus) { $0.silentBus = "/run/dbus/system_bus_socket" },
    ]
}

@Suite("The diagnosis of a machine")
struct DiagnosisTests {
    private static let running = NodeAnswer.status(WireStatusResponse())

    private static func causes(_ findings: [Finding]) -> Set<Cause> {
        Set(
            findings.compactMap {
                if case .problem(let cause) = $0.result { return cause }
                return nil
            })
    }

    @Test("A machine on which all is well has a fine finding for each check")
    func healthy() {
        let findings = Diagnosis.machine(MachineFacts(), node: .status(WireStatusResponse()))
        #expect(findings.allSatisfy { $0.result == .fine }, "\(findings)")
        #expect(findings.map(\.check) == Check.allCases.filter { $0.group == .machine })
    }

    @Test("Each cause is named, and no other, with a command that fixes it", arguments: MachineFault.all)
    func alone(_ fault: MachineFault) throws {
        var facts = MachineFacts()
        fault.change(&facts)
        let findings = Diagnosis.machine(facts, node: fault.node ?? Self.running)
        #expect(Self.causes(findings) == [fault.cause])
        let problem = try #require(findings.first { $0.result == .problem(fault.cause) })
        #expect(problem.check == fault.cause.check)
        #expect(!problem.sentence.isEmpty && !problem.sentence.hasSuffix(".") && !problem.remedy.isEmpty)
        for check in Check.allCases where check.group == .machine && check != fault.cause.check {
            let result: Finding.Result = fault.hides.contains(check) ? .notMeasured : .fine
            #expect(findings.filter { $0.check == check }.map(\.result) == [result], "\(check)")
        }
    }

    @Test("Every cause has a fault in these tests")
    func complete() {
        #expect(
            Set(MachineFault.all.map(\.cause)) == Set(Cause.allCases.filter { $0.check.group == .machine }))
    }

    @Test("Two causes at once are both named, except where one hides the other")
    func pairs() {
        for (index, first) in MachineFault.all.enumerated() {
            for second in MachineFault.all[(index + 1)...] {
                var facts = MachineFacts()
                first.change(&facts)
                second.change(&facts)
                // An account has one error, and so has a node that does not run.
                guard first.cause.check != second.cause.check || ![.account, .node].contains(first.cause.check) else {
                    continue
                }
                let nodes = [first.node, second.node].compactMap { $0 }
                let isWithoutNode = nodes.contains { if case .absent = $0 { true } else { false } }
                let node = isWithoutNode ? .absent : nodes.first ?? Self.running
                let hidden = [first, second].reduce(Set<Check>()) { $0.union($1.hides) }
                var expected = Set([first.cause, second.cause]).filter { !hidden.contains($0.check) }
                // The kernel refuses a watch, whoever runs.
                if [first.cause, second.cause].contains(.fewWatches) { expected.insert(.fewWatches) }
                // One check has one answer: the watches hide the descriptors. Without a node nobody counts them.
                if isWithoutNode || expected.contains(.fewWatches) { expected.remove(.fewDescriptors) }
                let findings = Diagnosis.machine(facts, node: node)
                #expect(Self.causes(findings) == expected, "\(first.cause) and \(second.cause)")
            }
        }
    }

    @Test("A node is installed where there is a service manager, else it is run")
    func start() {
        for (canInstall, command) in [(true, "baton node install"), (false, "baton node")] {
            var facts = MachineFacts()
            facts.canInstallNode = canInstall
            let findings = Diagnosis.machine(facts, node: .absent)
            #expect(findings.first { $0.result == .problem(.noNode) }?.remedy == [command])
        }
    }

    @Test("A silent node is not measured, and never fine")
    func silent() {
        let findings = Diagnosis.machine(MachineFacts(), node: .silent("the node does not answer within 3 s"))
        #expect(Self.causes(findings).isEmpty)
        #expect(findings.filter { $0.result == .notMeasured }.map(\.check) == [.node, .limits])
    }

    @Test("The errors of other commands name a cause by the same words")
    func words() {
        let responder = ResponderFault(operation: "look for devices", code: -65537).explanation()
        let causes = [Cause.noBus.sentence(SystemBus.unreachablePath() ?? ""), Cause.avahiStopped.sentence("")]
        #expect(causes.contains { responder.lowercased().contains($0.lowercased()) }, "\(responder)")
        #expect("\(NodeClientError.noNode(socketPath: "/run"))".contains(Cause.noNode.sentence("")))
        #expect(Cause.portTaken.sentence("4711").hasSuffix("port 4711 is in use by another program"))
        let off = HandoffSwitch(isOn: false)
        #expect(throws: HandoffError(.handoffOff, Cause.handoffOff.sentence(""))) { try off.requireOn() }
    }

    @Test("A path in a command is one word of a shell")
    func quoting() {
        #expect(ShellWord.quoted("/home/a/.local") == "/home/a/.local")
        #expect(ShellWord.quoted("/my home/it's") == #"'/my home/it'\''s'"#)
        #expect(ShellWord.quoted("") == "''")
    }
}
