// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonDiscovery
import BatonEventLoop
package import SystemPackage

/// Announces an invitation on the local network, so that joiners find it without an address.
package struct InvitationAnnouncement: Sendable {
    package enum Event: Sendable, Equatable {
        /// Joiners can find the invitation. The tag tells it from others: four lower-case letters and digits.
        case announced(tag: String)
        /// The DNS-SD responder does not answer; the reason is a sentence. It is tried again.
        case unavailable(String)
    }

    private let discovery: ServiceDiscovery
    private let record: InvitationRecord

    /// An announcement that does nothing before ``run(telling:)``.
    ///
    /// - Throws: `Errno` if the system has no thread to give.
    package init(of server: InvitationServer) throws(Errno) {
        discovery = try .ofInvitations()
        record = InvitationRecord(port: server.port, addresses: Announcer.ownAddresses())
    }

    /// Announces until ``stop()``. Call once.
    package func run(telling tell: @Sendable (Event) -> Void) async {
        try? discovery.publish(txt: record.strings)
        await discovery.start()
        for await event in discovery.events {
            switch event {
            case .registered(let instance): tell(.announced(tag: InvitationRecord.tag(of: instance)))
            case .rotationDue: try? discovery.rotate(txt: record.strings)
            case .responder(.unavailable(let reason, _)): tell(.unavailable(reason))
            // Discovery looks around as well.
            case .record(let instance, _, _): discovery.reject(instance)
            case .removed, .responder(.idle), .responder(.running): break
            }
        }
    }

    /// Withdraws the announcement. If the responder hangs, this waits for the call that is under way.
    package func stop() async {
        await discovery.stop()
    }
}

extension ServiceDiscovery {
    /// A discovery of invitations, with a thread of its own.
    static func ofInvitations() throws(Errno) -> ServiceDiscovery {
        var configuration = DiscoveryConfiguration()
        configuration.serviceType = InvitationRecord.serviceType
        return ServiceDiscovery(
            configuration: configuration, loop: ControlLoop.loop, executor: try BlockingExecutor(name: "invitations"))
    }
}
