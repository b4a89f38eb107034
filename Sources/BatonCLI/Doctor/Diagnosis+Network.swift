// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonDiscovery
import BatonEventLoop
import BatonNode
import Glibc

extension Diagnosis {
    /// Judges whether multicast DNS passes, and who else is there.
    ///
    /// - Parameters:
    ///   - unannounced: why the node is not announced; nil if it is.
    ///   - hasMetOthers: whether the node knows other devices of the account.
    ///   - heard: what the ear heard in 4 s or more, at the interfaces that matter.
    ///   - devices: nil if the account cannot be read.
    static func network(
        _ facts: MachineFacts, unannounced: String?, hasMetOthers: Bool, heard: MulticastEar.Report,
        devices: HeardDevices?
    ) -> [Finding] {
        let interfaces = heard.interfaces
        guard !interfaces.isEmpty else {
            let reason = Cause.noNetwork.sentence("")
            let hidden: [Check] = [.multicastOut, .multicastIn, .responder, .others]
            let lost = hidden.map { Finding.notMeasured($0, because: reason) }
            return [.problem(.noNetwork, remedy: ["ip -brief address"]), stacks(facts, interfaces)] + lost
        }
        let out = out(facts, interfaces)
        return [
            .fine(.network, "this machine is in a network at \(interfaces.map(\.name).joined(separator: ", "))"),
            stacks(facts, interfaces), out,
            out.result == .fine
                ? incoming(facts, heard)
                : .notMeasured(.multicastIn, because: "multicast DNS does not go out"),
            responder(facts, unannounced, heard),
            others(devices, hasMetOthers: hasMetOthers, heard),
        ]
    }

    private static func stacks(_ facts: MachineFacts, _ interfaces: [MulticastEar.Interface]) -> Finding {
        guard let user = facts.otherResponders.first else {
            return .fine(.stacks, "one program answers multicast DNS here")
        }
        let remedy =
            user == "systemd-resolve"
            ? interfaces.map { "sudo resolvectl mdns \(ShellWord.quoted($0.name)) no" }
            : ["sudo ss -ulpn 'sport = :5353'"]
        return .problem(
            .secondStack, of: user, evidence: ["two programs have UDP port 5353"], remedy: remedy)
    }

    private static func out(_ facts: MachineFacts, _ interfaces: [MulticastEar.Interface]) -> Finding {
        guard let silent = interfaces.first(where: { !$0.hasSent }) else {
            return .fine(.multicastOut, "multicast DNS goes out")
        }
        guard let error = silent.sendError else {
            return .notMeasured(
                .multicastOut, because: "UDP port 5353 of \(silent.name) cannot be used by this program")
        }
        let reason = String(cString: strerror(error))
        guard error == EPERM else {
            return .notMeasured(.multicastOut, because: "nothing can be sent on \(silent.name): \(reason)")
        }
        return .problem(
            .blockedOut5353, evidence: ["\(silent.name): \(reason)"],
            remedy: facts.filter.remedy(5353, "udp", isOutgoing: true))
    }

    private static func incoming(_ facts: MachineFacts, _ heard: MulticastEar.Report) -> Finding {
        guard let deaf = heard.interfaces.first(where: { !$0.hearsItself }) else {
            return .fine(.multicastIn, "multicast DNS comes in")
        }
        guard !heard.isLate else { return .notMeasured(.multicastIn, because: tooBusy) }
        return .problem(
            .blockedIn5353, evidence: ["\(deaf.name): the questions of this machine do not come back to it"],
            remedy: facts.filter.remedy(5353, "udp"))
    }

    private static func responder(
        _ facts: MachineFacts, _ unannounced: String?, _ heard: MulticastEar.Report
    ) -> Finding {
        guard facts.silentBus == nil else {
            return .notMeasured(.responder, because: "it is asked by D-Bus, which does not answer")
        }
        switch heard.responder {
        case .absent:
            return facts.isAvahiInstalled
                ? .problem(.avahiStopped, remedy: ["sudo systemctl start avahi-daemon"])
                : .problem(.noAvahi, remedy: ["sudo apt install avahi-daemon"])
        case .failed(let reason):
            return .notMeasured(.responder, because: reason)
        case .waiting:
            guard !heard.isLate else { return .notMeasured(.responder, because: tooBusy) }
            return .problem(.avahiHangs, remedy: ["sudo systemctl restart avahi-daemon"])
        case .asks:
            guard let ignored = heard.interfaces.first(where: { !$0.hearsResponder }) else {
                if let unannounced {
                    return .problem(
                        .unannounced, evidence: [unannounced], remedy: ["sudo journalctl -u avahi-daemon -n 20"])
                }
                return .fine(.responder, "Avahi uses \(heard.interfaces.map(\.name).joined(separator: ", "))")
            }
            guard ignored.hearsItself else {
                return .notMeasured(.responder, because: "it runs, but nobody can hear here what it asks")
            }
            guard !heard.isLate else { return .notMeasured(.responder, because: tooBusy) }
            return .problem(
                .avahiIgnores, of: ignored.name, evidence: ["Avahi was told to ask a question, and it did not come"],
                remedy: [
                    #"sudo sed -i -E 's/^(allow|deny)-interfaces/#&/' /etc/avahi/avahi-daemon.conf"#
                        + " && sudo systemctl restart avahi-daemon"
                ])
        }
    }

    private static func others(
        _ devices: HeardDevices?, hasMetOthers: Bool, _ heard: MulticastEar.Report
    ) -> Finding {
        guard let devices else { return .notMeasured(.others, because: "the account of this device cannot be read") }
        let count = devices.devices.values.count { $0.isMulticast }
        if count > 0 {
            return .fine(.others, "\(count) other \(count == 1 ? "device" : "devices") of the account can be heard")
        }
        guard heard.interfaces.contains(where: \.hearsItself) else {
            return .notMeasured(.others, because: "multicast DNS does not come in")
        }
        if !devices.strangers.isEmpty, devices.otherVersions.isEmpty, devices.devices.isEmpty {
            let evidence = devices.strangers.map(\.description).sorted().joined(separator: ", ")
            guard !hasMetOthers else {
                return .notMeasured(
                    .others,
                    because: "\(evidence) announces what this device cannot open: it is of another account, or this"
                        + " device was revoked or has not heard of a revocation")
            }
            return .problem(.otherAccountOnly, evidence: [evidence], remedy: ["baton account show"])
        }
        return .notMeasured(.others, because: heard.isLate ? tooBusy : "no other device of the account can be heard")
    }

    static var tooBusy: String { "this machine was too busy to tell silence from delay" }
}
