// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

package import struct SystemPackage.FilePath

/// The user's rules about activities of other devices: they are taken over without a question, asked about, or refused.
///
/// The first rule that matches decides. If none matches, the user is asked. Rules that are missing, have a mistake or
/// cannot be read take nothing over and write nothing. Their refusals hold until they are fixed.
package struct AcceptPolicy: Sendable, Hashable {
    package enum Action: String, Sendable, Hashable, CaseIterable {
        /// A document that is offered from now on is fetched into the rule's folder. Anything else is asked about.
        case accept
        /// The activity is listed, and taken over when the user says so.
        case ask
        /// The activity is not listed and cannot be taken over.
        case refuse
    }

    /// Rules of a policy at most: 256. Each is looked at for each activity.
    package static let ruleBound = 256

    /// One line of the file. A condition that it does not name matches everything.
    package struct Rule: Sendable, Hashable, CustomStringConvertible {
        /// The number of the line, from 1.
        package let line: Int
        package fileprivate(set) var action: Action
        /// The absolute folder of accepted documents. Every rule with ``Action/accept`` has one, and no other rule.
        package internal(set) var destination: FilePath?
        /// Whether a document whose name is taken there gets another name with a number. It is left to the user
        /// otherwise.
        package internal(set) var renames = false
        var device: String?
        var type: String?
        var maximumSize: UInt64?
        var network: Network?
        /// The conditions as they were written.
        var conditions = ""

        /// The rule as a user would write it again.
        package var description: String { conditions.isEmpty ? action.rawValue : "\(action.rawValue) \(conditions)" }
    }

    /// The networks that a rule is about.
    enum Network: Sendable, Hashable {
        /// The interface that a device was seen on, or is reached through.
        case interface(String)
        /// The addresses whose first `length` bits are those of `address`.
        case addresses(IPAddress, length: Int)
    }

    /// An activity as the sealed advertisement of its device describes it.
    struct Subject: Sendable {
        var deviceID: String
        var deviceName: String
        var type: String
        /// Bytes of the document; 0 without one.
        var size: UInt64
        /// Names of the interfaces that the device is seen on now.
        var interfaces: Set<String>
        /// The addresses that it announces.
        var addresses: [IPAddress]
    }

    /// In the order of the file. None asks about everything.
    package private(set) var rules: [Rule] = []

    /// The same rules, but the user is asked about what they accept.
    var asking: AcceptPolicy {
        AcceptPolicy(
            rules: rules.map { rule in
                var rule = rule
                if rule.action == .accept { (rule.action, rule.destination, rule.renames) = (.ask, nil, false) }
                return rule
            })
    }

    /// The rule that decides; nil asks.
    func rule(for subject: Subject) -> Rule? {
        rules.first { $0.matches(subject) }
    }

    /// The rules that may decide when a connection shows the network and the size. An advertisement only claims both.
    func candidates(for subject: Subject) -> [Rule] { rules.filter { $0.matchesDeviceAndType(of: subject) } }

    /// The rule that accepts an activity, and its folder; nil if none does.
    func acceptance(of subject: Subject) -> (rule: Rule, destination: FilePath)? {
        guard let rule = rule(for: subject), rule.action == .accept else { return nil }
        return rule.destination.map { (rule, $0) }
    }

    /// The rule that refuses an activity; nil if none does.
    func refusal(of subject: Subject) -> Rule? {
        rule(for: subject).flatMap { $0.action == .refuse ? $0 : nil }
    }
}

extension AcceptPolicy.Rule {
    func matches(_ subject: AcceptPolicy.Subject) -> Bool {
        matchesDeviceAndType(of: subject) && isAbout(size: subject.size)
            && isAbout(subject.interfaces, subject.addresses)
    }

    /// Whether the rule is about an activity of one size or another, over some network.
    func matchesDeviceAndType(of subject: AcceptPolicy.Subject) -> Bool {
        matchesDevice(subject) && (type.map { Wildcard.matches($0, subject.type) } ?? true)
    }

    /// Whether the rule is about documents of so many bytes.
    func isAbout(size: UInt64) -> Bool { maximumSize.map { size <= $0 } ?? true }

    /// Whether the rule is about the network of a device, by these interfaces of this one, or by its own addresses.
    func isAbout(_ interfaces: Set<String>, _ addresses: [IPAddress]) -> Bool {
        switch network {
        case nil: true
        case .interface(let name): interfaces.contains(name)
        case .addresses(let network, let length): addresses.contains { $0.hasPrefix(of: network, length: length) }
        }
    }

    /// Compares an identifier with identifiers only, so that no device can take another's place by its name.
    private func matchesDevice(_ subject: AcceptPolicy.Subject) -> Bool {
        guard let device = device?.lowercased() else { return true }
        return device == (AcceptPolicy.isDeviceID(device) ? subject.deviceID : subject.deviceName.lowercased())
    }
}

/// A pattern with `*` for any characters, such as `public.*`. Case does not matter.
enum Wildcard {
    /// The cost is the product of both lengths, which are 96 bytes each at most.
    static func matches(_ pattern: String, _ text: String) -> Bool {
        let text = Array(text.lowercased().utf8)
        // Whether the pattern so far matches the first bytes of the text, for each number of bytes.
        var matches = [true] + Array(repeating: false, count: text.count)
        for byte in pattern.lowercased().utf8 {
            if byte == UInt8(ascii: "*") {
                for index in text.indices where matches[index] { matches[index + 1] = true }
            } else {
                for index in text.indices.reversed() { matches[index + 1] = matches[index] && text[index] == byte }
                matches[0] = false
            }
        }
        return matches[text.count]
    }
}
