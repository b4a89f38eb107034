import BatonEventLoop
import BatonMessages
import BatonTransport

/// The rules once a connection shows the network. What a device announces of where it can be reached is only what it
/// says: it decides what is listed, and the connection decides what is taken over.
extension AcceptPolicy {
    /// The rules about an activity, each for some network, in their order: the first that covers the connection decides.
    func candidates(for subject: Subject) -> [Rule] {
        rules.filter { $0.matchesApartFromNetwork(subject) }
    }
}

extension AcceptPolicy.Rule {
    /// Whether the network that a connection goes over is one that the rule is about.
    fileprivate func covers(_ connection: Connection) -> Bool {
        switch network {
        case nil: return true
        case .addresses: return connection.remoteAddress.ipAddress.map { network?.contains($0) == true } ?? false
        case .interface(let name):
            let local = connection.localAddress.ipAddress
            let own = (try? InterfaceAddress.current(includingLoopback: true)) ?? []
            return own.contains { $0.address == local && $0.interfaceName == name }
        }
    }
}

extension Handoff.Plan {
    /// Holds the network that the origin is reached over against the policy as it was when the activity was accepted.
    ///
    /// - Throws: `refused`, with the rule: where one refuses it over this network or, for what a rule has accepted, where
    ///   another rule decides over this one.
    func requirePolicy(over connection: Connection) throws(HandoffError) {
        let deciding = candidates.first { $0.covers(connection) }
        if let deciding, deciding.action == .refuse { throw HandoffError(refusedBy: deciding) }
        guard let rule, deciding != rule else { return }
        throw HandoffError(
            .refused, "\(origin.name) is reached over another network than the rule in line \(rule.line) is about.")
    }
}

extension HandoffError {
    /// The user's policy refuses an activity.
    init(refusedBy rule: AcceptPolicy.Rule) {
        self.init(.refused, "the accept policy of this device refuses it. Line \(rule.line): \(rule).")
    }
}
