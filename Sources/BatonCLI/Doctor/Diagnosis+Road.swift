// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonDiscovery
import BatonEventLoop
import BatonMessages
import BatonNode
import BatonProtocol

extension Diagnosis {
    /// The port that the profiles of firewalls in Baton's packages open.
    private static let fixedPort: UInt16 = 24747

    /// Judges whether other devices can connect to this one, by the device that was asked to do so.
    ///
    /// - Parameters:
    ///   - asked: the name of the device.
    ///   - status: of the node here.
    static func incoming(
        _ measured: Measured<WireExamineResponse>, asked: String, status: WireStatusResponse, _ facts: MachineFacts
    ) -> Finding {
        let answer: WireExamineResponse
        switch measured {
        case .value(let value): answer = value
        case .missing(let reason): return .notMeasured(.incoming, because: reason)
        }
        guard answer.hasExamination else { return .notMeasured(.incoming, because: unexamined(answer, asked)) }
        switch answer.examination.dialBack {
        case .connected: return .fine(.incoming, "\(asked) can connect to this device")
        case .silent, .refused:
            let port = UInt16(clamping: status.port)
            let fixing = status.portIsFixed ? [] : ["\(facts.startCommand) --port \(fixedPort)"]
            return .problem(
                .portBlockedHere, of: asked,
                evidence: [
                    "TCP port \(port): \(answer.examination.dialBack == .silent ? "no answer in 3 s" : "refused")"
                ],
                remedy: fixing + facts.filter.remedy(status.portIsFixed ? port : fixedPort, "tcp"))
        case .noRoute: return .notMeasured(.incoming, because: "\(asked) has no route to this device")
        case .unknown, .turnedAway, .otherVersion, .unfinished, .UNRECOGNIZED:
            return .notMeasured(.incoming, because: "\(asked) could not finish its connection to this device")
        }
    }

    fileprivate static func unexamined(_ answer: WireExamineResponse, _ name: String) -> String {
        guard answer.hasUnexamined else { return "\(name) cannot be asked" }
        if answer.unexamined.code == .unsupported { return "\(name) runs a Baton that cannot connect back: update it" }
        return "\(name) cannot be asked: \(answer.unexamined.message)"
    }
}

extension RoadFacts {
    /// Clocks that differ by this are apart: 2 minutes. Activities and rules of time are told by it.
    private static let clockTolerance: Int64 = 120_000

    var answer: WireExamineResponse? { answered.value }
    var missing: String {
        if case .missing(let reason) = answered { reason } else { "\(name) cannot be asked" }
    }
    var device: HeardDevices.Device? { devices?.devices[id] }
    var isHeard: Bool { device?.isMulticast == true }
    var isReached: Bool { answer?.reach == .connected }
    /// Whether the node dialled the port that the device announces, also if the announcement came later.
    var wasDialledAtItsPort: Bool {
        guard let port = device?.advertisement.content.port else { return false }
        return answer?.addresses.contains { $0.hasSuffix(":\(port)") } == true
    }
    var examination: WireExaminationResponse? { answer?.hasExamination == true ? answer?.examination : nil }
    var hearsItself: Bool { heard.interfaces.contains { $0.hearsItself } }
    var isLate: Bool { heard.isLate || examination?.wasBusy == true }
    var unicast: [MulticastEar.Unicast] { addresses.compactMap { heard.unicast[$0] } }
    /// Whether its responder answered a unicast question.
    var answersUnicast: Bool {
        unicast.contains { if case .answered = $0 { true } else { false } }
    }
    /// Whether one of its addresses is of a network of this machine. A link-local address alone says that it was.
    var isOnLink: Bool {
        let routes = self.routes.filter { !$0.key.isLinkLocal }
        return routes.isEmpty ? !self.routes.isEmpty : routes.values.contains { $0.expected != nil }
    }
    /// Whether the machine is there, whatever its firewall does.
    var isThere: Bool {
        isHeard || answersUnicast || unicast.contains(.refused) || answer?.reach == .refused || examination != nil
    }
    var shownAddresses: String { addresses.map(\.description).joined(separator: ", ") }

    /// Judges the road. There is one finding for each check of the group.
    var findings: [Finding] { [membership, keys, version, route, dial, multicast, clock] }

    var membership: Finding {
        if isRevoked {
            return .problem(
                .revoked, of: name, remedy: [Finding.there(name, "baton account leave && baton account join")])
        }
        if answer?.reach == .turnedAway, isFresh, device?.isOutdated != true {
            return .problem(
                .notOfAccount, of: name, evidence: [answer?.failure.message ?? ""], remedy: ["baton account show"])
        }
        let sources = Set(addresses)
        if let devices, device == nil, !isReached, !sources.isDisjoint(with: devices.strangers) {
            return .problem(
                .notOfAccount, of: name, evidence: ["what \(shownAddresses) announces has other keys"],
                remedy: ["baton account show"])
        }
        guard isReached || device != nil else { return .notMeasured(.membership, because: missing) }
        return .fine(.membership, "\(name) is of this account")
    }

    var keys: Finding {
        guard !isRevoked else { return .notMeasured(.keys, because: "\(name) gets no keys any more") }
        if let first = apartRevocations.first {
            return .problem(
                .oldKeys, of: name,
                evidence: ["devices that had not met revoked \(apartRevocations.joined(separator: ", "))"],
                remedy: ["baton devices revoke \(first)"])
        }
        if device?.isOutdated == true {
            return .problem(
                .oldKeys, of: name, evidence: ["it announces itself with keys of before"],
                remedy: [Finding.there(name, "baton node")])
        }
        guard isReached || device != nil else { return .notMeasured(.keys, because: missing) }
        return .fine(.keys, "\(name) has the keys of this device")
    }

    var version: Finding {
        let isOther = devices.map { !Set(addresses).isDisjoint(with: $0.otherVersions) } ?? false
        if (answer?.reach == .otherVersion && isFresh) || (isOther && !isReached) {
            return .problem(
                .otherVersion, of: name, evidence: answer.map { [$0.failure.message] } ?? [],
                remedy: ["sudo apt install --only-upgrade baton"])
        }
        guard isReached || device != nil else { return .notMeasured(.version, because: missing) }
        return .fine(.version, "the Baton of \(name) fits this one")
    }

    var route: Finding {
        guard let first = addresses.first else {
            return .notMeasured(.route, because: "no address of \(name) is known")
        }
        guard isReached || !heard.interfaces.isEmpty else {
            return .notMeasured(.route, because: Cause.noNetwork.sentence(""))
        }
        guard isReached || !routes.isEmpty else {
            return .problem(
                .noRoute, of: name, evidence: ["\(shownAddresses): no route"], remedy: ["ip route get \(first)"])
        }
        for address in addresses {
            guard let route = routes[address], let expected = route.expected, expected != route.interface
            else { continue }
            return .problem(
                .vpnTakesRoute, of: name, evidence: ["\(address) goes by \(route.interface), not by \(expected)"],
                remedy: ["sudo ip route add \(address) dev \(ShellWord.quoted(expected))"])
        }
        return .fine(.route, "there is a route to \(name)")
    }

    var dial: Finding {
        guard let answer else { return .notMeasured(.dial, because: missing) }
        switch answer.reach {
        case .connected: return .fine(.dial, "\(name) lets this device in, in \(answer.dialMs) ms")
        case .turnedAway, .otherVersion:
            return .notMeasured(.dial, because: "\(name) ended the connection: \(answer.failure.message)")
        case .unfinished:
            return .notMeasured(.dial, because: "\(name) was too slow: \(answer.failure.message)")
        case .unknown, .UNRECOGNIZED:
            return .notMeasured(
                .dial, because: answer.hasFailure ? answer.failure.message : "no address of \(name) is known")
        case .refused, .silent, .noRoute: break
        }
        guard route.result == .fine else { return .notMeasured(.dial, because: "there is no way to \(name)") }
        if [.problem(.notOfAccount), .problem(.otherVersion)].contains(where: {
            [membership, version].map(\.result).contains($0)
        }) {
            return .notMeasured(.dial, because: "a node that does not fit this one is in the place of \(name)")
        }
        let evidence = [answer.failure.message]
        // The machine is there, nothing listens at the port, and its responder has no record of a node.
        if answer.reach == .refused, device == nil {
            guard hearsItself || answersUnicast else {
                return .notMeasured(
                    .dial,
                    because: "\(name) refuses the connection, and multicast DNS, which tells why, does not pass")
            }
            return .problem(
                .nodeGoneThere, of: name, evidence: evidence, remedy: [Finding.there(name, "baton doctor")])
        }
        guard isFresh || device == nil || wasDialledAtItsPort else {
            return .notMeasured(.dial, because: "\(name) was announced only later: run the doctor again")
        }
        if isThere {
            return .problem(
                .portBlockedThere, of: name, evidence: evidence,
                remedy: [Finding.there(name, "baton doctor")])
        }
        guard !isLate else { return .notMeasured(.dial, because: Diagnosis.tooBusy) }
        let others = devices?.devices.isEmpty == false ? "other devices are heard" : "no other device is heard"
        return .problem(
            .answersNowhere, of: name, evidence: evidence + [others], remedy: [Finding.there(name, "baton doctor")])
    }

    var multicast: Finding {
        let there = [Finding.there(name, "baton doctor")]
        guard hearsItself else {
            return .notMeasured(.deviceMulticast, because: "multicast DNS does not pass on this machine")
        }
        if let examination {
            if examination.heard, isHeard { return passes }
            guard !isLate else { return .notMeasured(.deviceMulticast, because: Diagnosis.tooBusy) }
            guard examination.hearsItself else {
                return .problem(
                    .blocked5353There, of: name, evidence: ["\(name) does not hear its own questions"],
                    remedy: there)
            }
            guard examination.responderAsks || isHeard else {
                return .problem(
                    .avahiThere, of: name, evidence: ["\(name) does not hear a question of its own Avahi"],
                    remedy: there)
            }
            if examination.heard, !isHeard, addresses.contains(where: { heard.heard[$0]?.asks == true }) {
                return .notMeasured(
                    .deviceMulticast,
                    because: "multicast passes, and \(name) is not announced: run `baton doctor` there")
            }
            let directions =
                examination.heard
                ? "\(name) hears this device, and is not heard here"
                : isHeard ? "\(name) is heard here, and does not hear this device" : "neither hears the other"
            return network(directions)
        }
        if isHeard {
            return .notMeasured(
                .deviceMulticast, because: "\(name) is heard here, and nobody knows whether it hears this device")
        }
        guard !isLate else { return .notMeasured(.deviceMulticast, because: Diagnosis.tooBusy) }
        // Avahi answers by unicast only where it announces a node. The record of the node rarely fits into such an
        // answer, which has 512 bytes at most. Another account's node would be heard by multicast.
        if answersUnicast, Set(addresses).isDisjoint(with: heard.heard.keys) {
            return network("\(shownAddresses) answers by unicast")
        }
        if unicast.contains(.refused) {
            return .problem(
                .avahiThere, of: name, evidence: ["\(shownAddresses): UDP port 5353 is refused"], remedy: there)
        }
        if isReached, !answersUnicast, isOnLink {
            return .problem(
                .blocked5353There, of: name, evidence: ["\(shownAddresses): UDP port 5353 does not answer"],
                remedy: there)
        }
        return .notMeasured(.deviceMulticast, because: missing)
    }

    private var passes: Finding { .fine(.deviceMulticast, "multicast DNS passes to \(name) and back") }

    private func network(_ evidence: String) -> Finding {
        isOnLink
            ? .problem(
                .noMulticast, of: name, evidence: [evidence],
                remedy: ["# switch off the isolation of clients in the router or access point"])
            : .problem(
                .twoSubnets, of: name, evidence: [evidence, shownAddresses],
                remedy: ["# let both devices join one network"])
    }

    var clock: Finding {
        guard let answer, examination != nil else {
            return .notMeasured(.clock, because: answer.map { Diagnosis.unexamined($0, name) } ?? missing)
        }
        guard answer.clockOffsetMs.magnitude >= UInt64(Self.clockTolerance) else {
            return .fine(.clock, "the clocks of both devices agree")
        }
        let seconds = answer.clockOffsetMs / 1000
        return .problem(
            .clocksApart, of: name,
            evidence: ["the clock there is \(abs(seconds)) s \(seconds > 0 ? "ahead" : "behind")"],
            remedy: ["sudo timedatectl set-ntp true"])
    }
}
