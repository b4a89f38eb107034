// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonTransport

extension Connection {
    /// The interfaces that lead to the other end, as the kernel has it now. The connection's own address says nothing:
    /// the other side may have chosen it, since each address can be reached through any interface.
    ///
    /// - Throws: `connectionLost` if nothing leads there, or only by another way than the connection had.
    fileprivate nonisolated func interfaces(to remote: IPAddress) throws(HandoffError) -> Set<String> {
        let own: [InterfaceAddress]
        let source: IPAddress?
        do {
            source = try InterfaceAddress.source(towards: remote)
            own = try InterfaceAddress.current(includingLoopback: true)
        } catch {
            throw HandoffError(.connectionLost, "nothing leads to \(remote) at the moment: \(error)")
        }
        // The kernel names a link-local address without its link, if the remote address is not link-local.
        let leading = own.filter { $0.address == source || source?.scopeID == 0 && $0.address.bytes == source?.bytes }
        // A cable that is out takes its address with it, and the default way leads over another interface.
        let local = localAddress.ipAddress
        guard !leading.isEmpty, own.contains(where: { $0.address == local }) else {
            throw HandoffError(.connectionLost, "nothing leads to \(remote) at the moment as it did")
        }
        return Set(leading.map(\.interfaceName))
    }
}

extension AcceptPolicy.Rule {
    /// The bytes that each entry of a folder counts for besides its contents: about what it takes on a disk.
    static let entrySize: UInt64 = 4096

    /// The bytes that a document counts for: all that is in it.
    static func size(of tree: DocumentTree) -> UInt64 {
        tree.size + entrySize * UInt64(tree.entryCount - 1)
    }

    /// Checks what a device says when it is asked. The rule has accepted what the device had advertised.
    ///
    /// - Parameter type: nil if nothing is said of it again.
    /// - Throws: `refused`, with the rule.
    func require(type: String?, size: UInt64) throws(HandoffError) {
        if let type, let pattern = self.type, !Wildcard.matches(pattern, type) {
            throw HandoffError(.refused, "its type is \(type) now, which the rule in line \(line) does not accept")
        }
        guard isAbout(size: size) else {
            throw HandoffError(
                .refused, "it has \(HumanUnits.bytes(size)) now, more than the rule in line \(line) accepts")
        }
    }
}

extension Handoff.Plan {
    /// Checks the network that the origin is reached over, and what it sends. The policy is the one by which the
    /// activity was accepted.
    ///
    /// - Parameter size: bytes of the document, as far as it is known; see ``size(of:)``.
    /// - Throws: `refused` if a rule refuses it, or if another rule decides than the one that accepted it.
    ///   `connectionLost` if a rule names an interface and none leads there.
    func requirePolicy(over connection: Connection, size: UInt64) throws(HandoffError) {
        let namesInterfaces = candidates.contains { if case .interface = $0.network { true } else { false } }
        let remote = connection.remoteAddress.ipAddress
        let interfaces = try namesInterfaces ? remote.map(connection.interfaces) ?? [] : []
        let deciding = candidates.first {
            $0.isAbout(size: size) && $0.isAbout(interfaces, remote.map { [$0] } ?? [])
        }
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

    /// The size that a document counts for: what was listed if the user accepts it, and all that is in it for a rule.
    func size(of tree: DocumentTree) -> UInt64 {
        rule == nil ? tree.size : AcceptPolicy.Rule.size(of: tree)
    }
}

extension HandoffError {
    init(refusedBy rule: AcceptPolicy.Rule) {
        self.init(.refused, "the accept policy of this device refuses it. Line \(rule.line): \(rule)")
    }
}
