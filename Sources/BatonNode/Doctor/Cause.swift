// SPDX-License-Identifier: Apache-2.0

/// A reason why devices do not see each other, or why nothing is handed over. The raw value is its name in `--json`.
package enum Cause: String, CaseIterable, Sendable {
    case noAccount, unusableAccount
    case wrongRights
    case diskFull, diskReadOnly
    case rulesMistake
    case handoffOff
    case noNode, portTaken
    case fewDescriptors, fewWatches
    case noBus
    case noAvahi, avahiStopped, avahiHangs, avahiIgnores, unannounced
    case secondStack
    case noNetwork
    case blockedOut5353, blockedIn5353
    case otherAccountOnly
    case portBlockedHere
    case revoked, notOfAccount, oldKeys, otherVersion
    case noRoute, vpnTakesRoute
    case portBlockedThere, nodeGoneThere, answersNowhere
    case noMulticast, twoSubnets, blocked5353There, avahiThere
    case clocksApart

    package var check: Check { judgement(of: "").check }

    /// One sentence without a full stop. The errors of other commands that have this cause use the same words.
    ///
    /// - Parameter subject: a path, an interface, a user, a port or a device. For ``noAccount``, ``unusableAccount``,
    ///   ``wrongRights`` and ``rulesMistake`` it is the sentence itself. Other causes name nothing, and ignore it.
    package func sentence(_ subject: String) -> String { judgement(of: subject).sentence }

    private func judgement(of subject: String) -> (check: Check, sentence: String) {
        switch self {
        case .noAccount, .unusableAccount: (.account, subject)
        case .wrongRights: (.folders, subject)
        case .rulesMistake: (.rules, subject)
        case .diskFull: (.disk, "the disk of \(subject) is full")
        case .diskReadOnly: (.disk, "the disk of \(subject) is read-only")
        case .handoffOff: (.handoff, "Handoff is switched off on this device")
        case .noNode: (.node, "no node is running here")
        case .portTaken: (.node, "no node can start here: port \(subject) is in use by another program")
        case .fewDescriptors: (.limits, "the node can open no further files and connections")
        case .fewWatches: (.limits, "this user can watch no further files and connections")
        case .noBus: (.bus, "the D-Bus system bus does not answer at \(subject)")
        case .noAvahi: (.responder, "Avahi is not installed")
        case .avahiStopped: (.responder, "Avahi is not running")
        case .avahiHangs: (.responder, "Avahi does not answer")
        case .avahiIgnores: (.responder, "Avahi does not use the interface \(subject)")
        case .unannounced: (.responder, "Avahi does not announce this device")
        case .secondStack:
            (.stacks, "a second program, of the user \(subject), can take the answers that are meant for Avahi")
        case .noNetwork: (.network, "this machine is in no network")
        case .blockedOut5353: (.multicastOut, "a firewall of this machine drops outgoing multicast DNS (UDP port 5353)")
        case .blockedIn5353: (.multicastIn, "a firewall of this machine drops incoming multicast DNS (UDP port 5353)")
        case .otherAccountOnly: (.others, "every other device with Baton on this network is of another account")
        case .portBlockedHere: (.incoming, "\(subject) cannot connect to the node of this machine")
        case .revoked: (.membership, "\(subject) was revoked from the account")
        case .notOfAccount:
            (
                .membership,
                "\(subject) does not accept this device: it is of another account, or one of the two was revoked or has"
                    + " not heard of a revocation"
            )
        case .oldKeys: (.keys, "\(subject) has not heard of the last revocation")
        case .otherVersion: (.version, "the version of Baton on \(subject) does not fit the one here")
        case .noRoute: (.route, "there is no route to \(subject)")
        case .vpnTakesRoute: (.route, "another interface, such as that of a VPN, takes the packets to \(subject)")
        case .portBlockedThere: (.dial, "\(subject) is there, but does not let this device in at the port of its node")
        case .nodeGoneThere:
            (
                .dial,
                "nothing listens at the last port of \(subject): no node runs there, or its announcements do not arrive"
            )
        case .answersNowhere:
            (.dial, "\(subject) does not answer: it is off, elsewhere, behind a firewall, or isolated by this network")
        case .noMulticast:
            (.deviceMulticast, "\(subject) can be reached, but this network does not pass multicast between the two")
        case .twoSubnets:
            (.deviceMulticast, "\(subject) is in another subnet, and multicast DNS does not leave its own")
        case .blocked5353There: (.deviceMulticast, "a firewall on \(subject) drops multicast DNS (UDP port 5353)")
        case .avahiThere: (.deviceMulticast, "Avahi on \(subject) is not running, or does not use this network")
        case .clocksApart: (.clock, "the clocks here and on \(subject) differ by minutes")
        }
    }
}

/// A question that the doctor answers, in the order of its report. The raw value is the name in `--json`.
package enum Check: String, CaseIterable, Sendable {
    case account, folders, disk, rules, handoff, node, limits, bus
    case network, stacks, multicastOut, multicastIn, responder, others, incoming
    case membership, keys, version, route, dial, deviceMulticast, clock
}
