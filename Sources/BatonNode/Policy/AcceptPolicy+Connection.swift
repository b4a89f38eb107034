// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonTransport

/// The rules once a connection shows the network, and the other device what it sends. What a device announces of where
/// it can be reached, and of how much it has, is only what it says: it decides what is listed.
extension AcceptPolicy {
    /// The rules about an activity of whatever size, each for some network, in their order.
    func candidates(for subject: Subject) -> [Rule] {
        rules.filter { $0.matchesDeviceAndType(of: subject) }
    }
}

/// The way that leads to where a connection goes.
struct Route: Sendable {
    let remote: IPAddress?
    /// The interfaces that lead there.
    let interfaces: Set<String>

    /// The address of this machine that a connection has says nothing: the other side may have chosen it, since each
    /// can be reached through any interface. What is answered goes the way that the kernel has now.
    ///
    /// - Parameter namesInterfaces: whether somebody wants to know them.
    /// - Throws: `connectionLost` where nothing leads there, or only by another way than the connection had.
    init(of connection: Connection, namesInterfaces: Bool) throws(HandoffError) {
        remote = connection.remoteAddress.ipAddress
        guard namesInterfaces, let remote else {
            interfaces = []
            return
        }
        let own: [InterfaceAddress]
        let source: IPAddress?
        do {
            source = try InterfaceAddress.source(towards: remote)
            own = try InterfaceAddress.current(includingLoopback: true)
        } catch {
            throw HandoffError(.connectionLost, "nothing leads to \(remote) at the moment: \(error)")
        }
        // Towards what is no link's own address the kernel names one of a link without that.
        let leading = own.filter { $0.address == source || source?.scopeID == 0 && $0.address.bytes == source?.bytes }
        interfaces = Set(leading.map(\.interfaceName))
        // A cable that is out takes the address with it, and leaves the default way, by another interface, to be taken.
        let local = connection.localAddress.ipAddress
        guard !interfaces.isEmpty, own.contains(where: { $0.address == local }) else {
            throw HandoffError(.connectionLost, "nothing leads to \(remote) at the moment as it did")
        }
    }
}

extension AcceptPolicy.Rule {
    /// Whether a connection goes over a network that the rule is about.
    func covers(_ route: Route) -> Bool {
        switch network {
        case nil: true
        case .addresses: route.remote.map { network?.contains($0) == true } ?? false
        case .interface(let name): route.interfaces.contains(name)
        }
    }

    fileprivate var namesInterface: Bool {
        if case .interface = network { true } else { false }
    }
}

extension Handoff.Plan {
    /// Holds the network that the origin is reached over, and what it sends, against the policy as it was when the
    /// activity was accepted.
    ///
    /// - Parameter size: bytes of the document, as far as it is known; see ``size(of:)``.
    /// - Throws: `refused`, with the rule: where one refuses it or, for what a rule has accepted, where another one
    ///   decides; `connectionLost` where it has to be known which interface leads there, and none does.
    func requirePolicy(over connection: Connection, size: UInt64) throws(HandoffError) {
        let route = try Route(of: connection, namesInterfaces: candidates.contains(where: \.namesInterface))
        let deciding = candidates.first { $0.isAbout(size: size) && $0.covers(route) }
        if let deciding, deciding.action == .refuse { throw HandoffError(refusedBy: deciding) }
        guard let rule, deciding != rule else { return }
        try rule.require(type: nil, size: size)
        guard let deciding else {
            throw HandoffError(
                .refused, "\(origin.name) is reached over another network than the rule in line \(rule.line) is about")
        }
        throw HandoffError(
            .refused,
            "as \(origin.name) is reached now, another rule decides than that in line \(rule.line). Line"
                + " \(deciding.line): \(deciding)")
    }

    /// What a document counts for: for a user what was listed, for a rule all that is in it.
    func size(of tree: DocumentTree) -> UInt64 {
        rule == nil ? tree.size : AcceptPolicy.Rule.size(of: tree)
    }
}

extension HandoffError {
    /// The user's policy refuses an activity.
    init(refusedBy rule: AcceptPolicy.Rule) {
        self.init(.refused, "the accept policy of this device refuses it. Line \(rule.line): \(rule)")
    }
}
