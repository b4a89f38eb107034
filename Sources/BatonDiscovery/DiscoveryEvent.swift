// SPDX-License-Identifier: Apache-2.0

/// An event that discovery tells its owner.
package enum DiscoveryEvent: Sendable, Hashable {
    /// The system's DNS-SD responder came or went.
    case responder(ResponderState)
    /// An instance shows this TXT record now: its first one, a new one, or the same one on another interface.
    ///
    /// `txt` is the record as it is on the network (``TextRecord/decode(_:)``), from anyone. Until the owner gives a
    /// verdict (such as ``ServiceDiscovery/keep(_:)``), only the first record of an instance is told.
    case record(instance: String, interfaceIndex: UInt32, txt: [UInt8])
    /// An instance whose record was told has gone.
    case removed(instance: String)
    /// This device needs another instance name, because its period is over or its name is lost. A name is lost when the
    /// responder was restarted or another host has the name.
    ///
    /// Answer with ``ServiceDiscovery/rotate(txt:whenRationed:)``. Until then no other name is registered, and if the
    /// name is lost, no record is sent.
    case rotationDue
    /// This device is on the network under a new instance name, and no longer under an older one.
    case registered(instance: String)
}

/// Whether the system's DNS-SD responder can be used.
package enum ResponderState: Sendable, Hashable {
    /// Not started, or stopped.
    case idle
    /// It answers.
    case running
    /// It does not answer; the reason is a sentence for people. It is tried again after `retryAfter`.
    case unavailable(reason: String, retryAfter: Duration)
}
