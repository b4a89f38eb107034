// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

package import struct SystemPackage.FilePath

/// What the user has written about activities of other devices: taken over by themselves, asked about, or refused.
///
/// The first rule that matches decides; what none matches is asked about. Without rules nothing is ever taken over or
/// written without the user's own action, and neither while there is a mistake in them, or they cannot be read; what
/// they refuse stays refused then, for as long as the node runs where they cannot be read.
package struct AcceptPolicy: Sendable, Hashable {
    /// What a rule says to do.
    package enum Action: String, Sendable, Hashable, CaseIterable {
        /// A document that is offered from now on is fetched into the rule's folder; anything else is asked about.
        case accept
        /// The activity is listed, and taken over when the user says so.
        case ask
        /// The activity is not listed and cannot be taken over.
        case refuse
    }

    /// The most rules that a policy has: 256. Each is looked at for each activity.
    package static let ruleBound = 256

    /// One line of the file. What it does not name matches everything.
    package struct Rule: Sendable, Hashable, CustomStringConvertible {
        /// Where it stands, from 1.
        package let line: Int
        package let action: Action
        /// Where an accepted document goes: absolute. Only with ``Action/accept``, and then always.
        package internal(set) var destination: FilePath?

        /// A document whose name is taken there gets another name with a number, instead of being left to the user.
        package internal(set) var renames = false

        var device: String?
        var type: String?
        var maximumSize: UInt64?
        var network: Network?
        /// The conditions as they were written.
        var conditions = ""

        init(line: Int, action: Action) {
            self.line = line
            self.action = action
        }

        /// The rule as one would write it again.
        package var description: String { conditions.isEmpty ? action.rawValue : "\(action.rawValue) \(conditions)" }
    }

    /// The networks that a rule is about.
    enum Network: Sendable, Hashable {
        /// The interface that a device was seen on, or is reached through.
        case interface(String)
        /// The addresses whose first `length` bits are those of `address`.
        case addresses(IPAddress, length: Int)

        func contains(_ address: IPAddress) -> Bool {
            switch self {
            case .interface: false
            case .addresses(let network, let length): address.hasPrefix(of: network, length: length)
            }
        }
    }

    /// What a policy looks at, as the other device's sealed advertisement says it.
    struct Subject: Sendable {
        var deviceID: String
        var deviceName: String
        var type: String
        /// Bytes of the document; 0 without one.
        var size: UInt64
        /// Names of the interfaces that the device is seen on now.
        var interfaces: [String]
        /// Where it says that it can be dialled.
        var addresses: [IPAddress]
    }

    /// In the order of the file.
    package let rules: [Rule]

    /// The policy of rules; none asks about everything.
    init(rules: [Rule] = []) {
        self.rules = rules
    }

    /// The same rules, but that what they accept is asked about, in its place.
    var asking: AcceptPolicy {
        AcceptPolicy(rules: rules.map { $0.action == .accept ? $0.asking : $0 })
    }

    /// The rule that decides; `nil` asks.
    func rule(for subject: Subject) -> Rule? {
        rules.first { $0.matches(subject) }
    }

    /// The rule that accepts an activity, and its folder; nil if none does.
    func acceptance(of subject: Subject) -> (rule: Rule, destination: FilePath)? {
        guard let rule = rule(for: subject), rule.action == .accept, let destination = rule.destination else {
            return nil
        }
        return (rule, destination)
    }

    /// The rule that refuses an activity, if one does.
    func refusal(of subject: Subject) -> Rule? {
        guard let rule = rule(for: subject), rule.action == .refuse else { return nil }
        return rule
    }
}

extension AcceptPolicy.Rule {
    /// The same conditions, about which the user is asked.
    var asking: AcceptPolicy.Rule {
        var rule = AcceptPolicy.Rule(line: line, action: .ask)
        (rule.device, rule.type, rule.maximumSize, rule.network) = (device, type, maximumSize, network)
        rule.conditions = conditions
        return rule
    }

    func matches(_ subject: AcceptPolicy.Subject) -> Bool {
        matchesDeviceAndType(of: subject) && isAbout(size: subject.size) && matchesNetwork(subject)
    }

    /// Whether it is about an activity of one size or another, over some network.
    func matchesDeviceAndType(of subject: AcceptPolicy.Subject) -> Bool {
        matchesDevice(subject) && (type.map { Wildcard.matches($0, subject.type) } ?? true)
    }

    /// Whether it is about documents of so many bytes.
    func isAbout(size: UInt64) -> Bool { maximumSize.map { size <= $0 } ?? true }

    /// An identifier is compared with identifiers only, so that no device can take another's by its name.
    private func matchesDevice(_ subject: AcceptPolicy.Subject) -> Bool {
        guard let device else { return true }
        if AcceptPolicy.isDeviceID(device) { return device.lowercased() == subject.deviceID }
        return device.lowercased() == subject.deviceName.lowercased()
    }

    private func matchesNetwork(_ subject: AcceptPolicy.Subject) -> Bool {
        switch network {
        case nil: true
        case .interface(let name): subject.interfaces.contains(name)
        case .addresses: subject.addresses.contains { network?.contains($0) == true }
        }
    }
}

/// A text with `*` for anything, as types are written: `public.*`. Case does not matter.
enum Wildcard {
    /// Linear but for the pattern's stars: at most the product of both lengths, which are 96 bytes each.
    static func matches(_ pattern: String, _ text: String) -> Bool {
        let (pattern, text) = (Array(pattern.lowercased().utf8), Array(text.lowercased().utf8))
        let star = UInt8(ascii: "*")
        var (position, next) = (0, 0)
        var lastStar: (pattern: Int, text: Int)?
        while next < text.count {
            if position < pattern.count, pattern[position] == star {
                lastStar = (position, next)
                position += 1
            } else if position < pattern.count, pattern[position] == text[next] {
                position += 1
                next += 1
            } else if let back = lastStar {
                // The last star takes one character more.
                lastStar = (back.pattern, back.text + 1)
                (position, next) = (back.pattern + 1, back.text + 1)
            } else {
                return false
            }
        }
        return pattern[position...].allSatisfy { $0 == star }
    }
}
