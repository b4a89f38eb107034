// SPDX-License-Identifier: Apache-2.0

import BatonNode

/// One answer of `baton doctor`.
struct Finding: Sendable, Hashable {
    enum Result: Sendable, Hashable {
        case fine
        case problem(Cause)
        /// Nothing is known. It never means that all is well.
        case notMeasured

        /// The result in JSON.
        var name: String {
            switch self {
            case .fine: "fine"
            case .problem: "problem"
            case .notMeasured: "notMeasured"
            }
        }
    }

    let check: Check
    let result: Result
    /// One sentence for people, without a full stop.
    let sentence: String
    /// The signs that were seen: a path and its mode, an error, a count.
    var evidence: [String] = []
    /// Shell commands that fix a problem, one in each element. A step for another device or for a person is a comment
    /// of the shell: see ``there(_:_:)``.
    var remedy: [String] = []

    static func fine(_ check: Check, _ sentence: String) -> Finding {
        Finding(check: check, result: .fine, sentence: sentence)
    }

    /// - Parameter subject: completes the sentence of the cause: see ``Cause/sentence(_:)``.
    static func problem(
        _ cause: Cause, of subject: String = "", evidence: [String] = [], remedy: [String]
    ) -> Finding {
        Finding(
            check: cause.check, result: .problem(cause), sentence: cause.sentence(subject), evidence: evidence,
            remedy: remedy)
    }

    /// A command for another device, for ``remedy``. The name has no line breaks, as no name of a device has.
    static func there(_ device: String, _ command: String) -> String { "# on \(device): \(command)" }

    static func notMeasured(_ check: Check, because reason: String) -> Finding {
        Finding(check: check, result: .notMeasured, sentence: reason)
    }
}

extension Check {
    /// The part of the report that a check belongs to.
    enum Group: String, CaseIterable, Sendable {
        case machine, network, road

        /// The heading of its findings.
        ///
        /// - Parameter device: the name of the device whose road is examined.
        func title(_ device: String?) -> String {
            switch self {
            case .machine: "this machine"
            case .network: "this network"
            case .road: "the road to \(SafeText.escaped(device ?? "the device"))"
            }
        }
    }

    var group: Group { facts.group }
    var subject: String { facts.subject }

    private var facts: (group: Group, subject: String) {
        switch self {
        case .account: (.machine, "account")
        case .folders: (.machine, "folders")
        case .disk: (.machine, "disk")
        case .rules: (.machine, "rules and shared folders")
        case .handoff: (.machine, "Handoff")
        case .node: (.machine, "node")
        case .limits: (.machine, "system limits")
        case .bus: (.machine, "D-Bus")
        case .network: (.network, "interfaces")
        case .stacks: (.network, "other responders")
        case .multicastOut: (.network, "outgoing multicast DNS")
        case .multicastIn: (.network, "incoming multicast DNS")
        case .responder: (.network, "Avahi")
        case .others: (.network, "other devices")
        case .incoming: (.network, "incoming connections")
        case .membership: (.road, "account")
        case .keys: (.road, "keys")
        case .version: (.road, "version")
        case .route: (.road, "route")
        case .dial: (.road, "connection")
        case .deviceMulticast: (.road, "multicast DNS")
        case .clock: (.road, "clock")
        }
    }
}
