import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonTransport

/// The rules once a connection shows the network, and the other device what it sends. What a device announces of where it
/// can be reached, and of how much it has, is only what it says: it decides what is listed.
extension AcceptPolicy {
    /// The rules about an activity of whatever size, each for some network, in their order.
    func candidates(for subject: Subject) -> [Rule] {
        rules.filter { $0.matchesDeviceAndType(of: subject) }
    }
}

/// The way that a connection takes, as far as this machine can tell.
private struct Route {
    let local: IPAddress?
    let remote: IPAddress?
    /// What the machine's interfaces have; empty where nobody wants to know, or that cannot be told.
    let own: [InterfaceAddress]

    init(_ connection: Connection, namesInterfaces: Bool) {
        local = connection.localAddress.ipAddress
        remote = connection.remoteAddress.ipAddress
        own = namesInterfaces ? (try? InterfaceAddress.current(includingLoopback: true)) ?? [] : []
    }

    /// Whether it goes through an interface; `nil` where that is not clear.
    ///
    /// An address of this machine can be reached through any of its interfaces, so that the other side chooses the one
    /// that it names; what comes from an address that lies behind the interface comes, and is answered, through it.
    func goes(through interface: String) -> Bool? {
        let ofInterface = own.filter { $0.interfaceName == interface }
        guard let local, let remote, own.contains(where: { $0.address == local }) else { return nil }
        let (isItsAddress, isBehind) = (
            ofInterface.contains { $0.address == local }, ofInterface.contains { $0.isOnLink(remote) }
        )
        return isItsAddress == isBehind ? isItsAddress : nil
    }
}

extension AcceptPolicy.Rule {
    /// Whether a connection goes over a network that the rule is about. Where that is not clear it accepts nothing, and
    /// refuses or asks.
    fileprivate func covers(_ route: Route) -> Bool {
        switch network {
        case nil: true
        case .addresses: route.remote.map { network?.contains($0) == true } ?? false
        case .interface(let name): route.goes(through: name) ?? (action != .accept)
        }
    }

    fileprivate var namesInterface: Bool {
        if case .interface = network { true } else { false }
    }
}

extension Handoff.Plan {
    /// Holds the network that the origin is reached over, and what it sends, against the policy as it was when the activity
    /// was accepted.
    ///
    /// - Parameter size: bytes of the document, as far as it is known; see ``AcceptPolicy/Rule/size(of:)``.
    /// - Throws: `refused`, with the rule: where one refuses it or, for what a rule has accepted, where another one decides.
    func requirePolicy(over connection: Connection, size: UInt64) throws(HandoffError) {
        let route = Route(connection, namesInterfaces: candidates.contains(where: \.namesInterface))
        let deciding = candidates.first { $0.isAbout(size: size) && $0.covers(route) }
        if let deciding, deciding.action == .refuse { throw HandoffError(refusedBy: deciding) }
        guard let rule, deciding != rule else { return }
        try rule.require(type: nil, size: size)
        guard let deciding else {
            throw HandoffError(
                .refused, "\(origin.name) is reached over another network than the rule in line \(rule.line) is about.")
        }
        throw HandoffError(
            .refused,
            "as \(origin.name) is reached now, another rule decides than that in line \(rule.line). Line"
                + " \(deciding.line): \(deciding).")
    }
}

extension HandoffError {
    /// The user's policy refuses an activity.
    init(refusedBy rule: AcceptPolicy.Rule) {
        self.init(.refused, "the accept policy of this device refuses it. Line \(rule.line): \(rule).")
    }
}
