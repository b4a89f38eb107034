// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonDiscovery
package import BatonEventLoop
import BatonProtocol
package import SystemPackage

/// An invitation that is announced on the local network. Anyone may have announced it.
package struct FoundInvitation: Sendable, Equatable {
    /// Four characters that the inviter shows too: lower-case letters and digits.
    package let tag: String
    /// Where the inviter listens, the best first; never empty.
    package let addresses: [SocketAddress]
}

/// Announces an invitation on the local network, or looks for those of others.
package struct InvitationDiscovery: Sendable {
    package enum Event: Sendable, Equatable {
        /// Joiners can find the invitation. The tag tells it from others: see ``FoundInvitation/tag``.
        case announced(tag: String)
        /// The invitations that are announced now, in the order in which they were seen.
        case found([FoundInvitation])
        /// The DNS-SD responder does not answer; the reason is a sentence. It is tried again.
        case unavailable(String)
    }

    /// The most invitations that are told: 9. Further ones are ignored.
    package static let bound = 9

    private struct Seen {
        let instance: String
        var record: InvitationRecord
        var interfaces: Set<UInt32>

        var invitation: FoundInvitation {
            FoundInvitation(
                tag: InvitationRecord.tag(of: instance),
                addresses: SocketAddress.dialled(of: record.addresses, port: record.port, interfaces: interfaces))
        }
    }

    private let discovery: ServiceDiscovery
    /// What is announced; nil to look for the invitations of others.
    private let own: InvitationRecord?

    /// A discovery that does nothing before ``run(telling:)``.
    ///
    /// - Parameter server: the invitation that is announced; nil, the default, looks for those of others.
    /// - Throws: `Errno` if the system has no thread to give.
    package init(announcing server: InvitationServer? = nil) throws(Errno) {
        var configuration = DiscoveryConfiguration()
        configuration.serviceType = InvitationRecord.serviceType
        discovery = ServiceDiscovery(
            configuration: configuration, loop: ControlLoop.loop, executor: try BlockingExecutor(name: "invitations"))
        own = server.map { InvitationRecord(port: $0.port, addresses: Announcer.ownAddresses()) }
    }

    /// Announces or looks until ``stop()``. Call once.
    package func run(telling tell: @Sendable (Event) -> Void) async {
        if let own { discovery.publish(txt: own.strings) }
        await discovery.start()
        var seen: [Seen] = []
        for await event in discovery.events {
            switch event {
            case .registered(let instance): tell(.announced(tag: InvitationRecord.tag(of: instance)))
            case .rotationDue: if let own { discovery.rotate(txt: own.strings) }
            case .record(let instance, let interface, let txt):
                guard own == nil, let record = TextRecord.decode(txt).flatMap(InvitationRecord.init(decoding:)) else {
                    discovery.reject(instance)
                    continue
                }
                if let index = seen.firstIndex(where: { $0.instance == instance }) {
                    seen[index].record = record
                    seen[index].interfaces.insert(interface)
                } else if seen.count < Self.bound {
                    seen.append(Seen(instance: instance, record: record, interfaces: [interface]))
                    discovery.follow(instance)
                } else {
                    discovery.reject(instance)
                    continue
                }
                tell(.found(seen.map(\.invitation)))
            case .removed(let instance):
                seen.removeAll { $0.instance == instance }
                if own == nil { tell(.found(seen.map(\.invitation))) }
            case .responder(.unavailable(let reason, _)): tell(.unavailable(reason))
            case .responder(.idle), .responder(.running): break
            }
        }
    }

    /// Withdraws what is announced, and ends the search. If the responder hangs, this waits for the call that is under
    /// way.
    package func stop() async {
        await discovery.stop()
    }
}
