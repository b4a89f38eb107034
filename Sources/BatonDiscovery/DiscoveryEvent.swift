// SPDX-License-Identifier: Apache-2.0

/// What discovery tells its owner.
package enum DiscoveryEvent: Sendable, Hashable {
    /// The system's DNS-SD responder came or went.
    case responder(ResponderState)
    /// An instance shows this TXT record now: its first one, a new one, or the same one on another interface.
    ///
    /// `txt` is the record as it is on the network (``TextRecord/decode(_:)``), from anybody. Of an instance without
    /// a verdict (``ServiceDiscovery/keep(_:)`` or ``ServiceDiscovery/reject(_:)``) only the first record is told.
    case record(instance: String, interfaceIndex: UInt32, txt: [UInt8])
    /// An instance of which a record was told has gone, or shows none any more.
    case removed(instance: String)
    /// This device is to have another instance name, because its own has lived for its period or is lost: the responder
    /// was started anew, or somebody else has that name. Answer with ``ServiceDiscovery/rotate(txt:whenRationed:)``.
    /// Until then nothing is registered under another name, and nothing that is published meanwhile is sent where the
    /// name is lost.
    case rotationDue
    /// This device is seen under a new instance name, and no longer under an older one.
    case registered(instance: String)
}

/// Whether the system's DNS-SD responder can be used.
package enum ResponderState: Sendable, Hashable {
    /// Not started, or stopped.
    case idle
    /// It answers.
    case running
    /// It does not; the reason is a sentence for people. It is tried again after `retryAfter`.
    case unavailable(reason: String, retryAfter: Duration)
}
