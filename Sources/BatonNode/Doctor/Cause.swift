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

    package var check: Check {
        switch self {
        case .noAccount, .unusableAccount: .account
        case .wrongRights: .folders
        case .diskFull, .diskReadOnly: .disk
        case .rulesMistake: .rules
        case .handoffOff: .handoff
        case .noNode, .portTaken: .node
        case .fewDescriptors, .fewWatches: .limits
        case .noBus: .bus
        case .noAvahi, .avahiStopped, .avahiHangs, .avahiIgnores, .unannounced: .responder
        case .secondStack: .stacks
        case .noNetwork: .network
        case .blockedOut5353: .multicastOut
        case .blockedIn5353: .multicastIn
        case .otherAccountOnly: .others
        case .portBlockedHere: .incoming
        case .revoked, .notOfAccount: .membership
        case .oldKeys: .keys
        case .otherVersion: .version
        case .noRoute, .vpnTakesRoute: .route
        case .portBlockedThere, .nodeGoneThere, .answersNowhere: .dial
        case .noMulticast, .twoSubnets, .blocked5353There, .avahiThere: .deviceMulticast
        case .clocksApart: .clock
        }
    }

    /// One sentence without a full stop. The errors of other commands that have this cause use the same words.
    ///
    /// - Parameter subject: a path, an interface, a user, a port or a device. For ``noAccount``, ``unusableAccount``,
    ///   ``wrongRights`` and ``rulesMistake`` it is the sentence itself. Other causes name nothing, and ignore it.
    package func sentence(_ subject: String) -> String {
        switch self {
        case .noAccount, .unusableAccount, .wrongRights, .rulesMistake: subject
        case .diskFull: "the disk of \(subject) is full"
        case .diskReadOnly: "the disk of \(subject) is read-only"
        case .handoffOff: "Handoff is switched off on this device"
        case .noNode: "no node is running here"
        case .portTaken: "no node can start here: port \(subject) is in use by another program"
        case .fewDescriptors: "the node can open no further files and connections"
        case .fewWatches: "this user can watch no further files and connections"
        case .noBus: "the D-Bus system bus does not answer at \(subject)"
        case .noAvahi: "Avahi is not installed"
        case .avahiStopped: "Avahi is not running"
        case .avahiHangs: "Avahi does not answer"
        case .avahiIgnores: "Avahi does not use the interface \(subject)"
        case .unannounced: "Avahi does not announce this device"
        case .secondStack: "a second program, of the user \(subject), can take the answers that are meant for Avahi"
        case .noNetwork: "this machine is in no network"
        case .blockedOut5353: "a firewall of this machine drops outgoing multicast DNS (UDP port 5353)"
        case .blockedIn5353: "a firewall of this machine drops incoming multicast DNS (UDP port 5353)"
        case .otherAccountOnly: "every other device with Baton on this network is of another account"
        case .portBlockedHere: "\(subject) cannot connect to the node of this machine"
        case .revoked: "\(subject) was revoked from the account"
        case .notOfAccount:
            "\(subject) does not accept this device: it is of another account, or one of the two was revoked or has not"
                + " heard of a revocation"
        case .oldKeys: "\(subject) has not heard of the last revocation"
        case .otherVersion: "the version of Baton on \(subject) does not fit the one here"
        case .noRoute: "there is no route to \(subject)"
        case .vpnTakesRoute: "another interface, such as that of a VPN, takes the packets to \(subject)"
        case .portBlockedThere: "\(subject) is there, but does not let this device in at the port of its node"
        case .nodeGoneThere:
            "nothing listens at the last port of \(subject): no node runs there, or its announcements do not arrive"
        case .answersNowhere:
            "\(subject) does not answer: it is off, elsewhere, behind a firewall, or isolated by this network"
        case .noMulticast: "\(subject) can be reached, but this network does not pass multicast between the two"
        case .twoSubnets: "\(subject) is in another subnet, and multicast DNS does not leave its own"
        case .blocked5353There: "a firewall on \(subject) drops multicast DNS (UDP port 5353)"
        case .avahiThere: "Avahi on \(subject) is not running, or does not use this network"
        case .clocksApart: "the clocks here and on \(subject) differ by minutes"
        }
    }
}
