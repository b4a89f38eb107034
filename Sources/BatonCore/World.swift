// SPDX-License-Identifier: Apache-2.0

/// The contents that the core carries and does not look at. The node has one world, and a simulator another.
package protocol World {
    associatedtype Activity: OfferedContent
    /// An application behind its connection to the node.
    associatedtype Application: Sendable
    /// The data that a claim keeps for its holder.
    associatedtype Kept: Sendable
    /// How far the holder of a claim says that it is.
    associatedtype Progress: Sendable
    /// Why something failed, as people read it.
    associatedtype Failure: Error

    /// Returns the data of a new claim on an activity.
    static func keep(_ activity: Activity) -> Kept
    /// Keeps how far the holder is.
    static func note(_ progress: Progress, in kept: inout Kept)
    /// Puts a refusal into words.
    static func failure(_ refusal: Refusal) -> Failure
}

/// An activity that an application offers, with the parts that the core looks at.
package protocol OfferedContent: Sendable {
    /// The part that other devices know before they take the activity over.
    associatedtype Summary: Equatable
    /// The contents that a device gets when it takes the activity over.
    associatedtype Payload: Sendable

    var id: ActivityID { get }
    /// The identifier of the application that offers it; empty if a command does.
    var application: String { get }
    var isExclusive: Bool { get }
    /// Whether the application wants to be asked for the state when a device takes the activity over.
    var needsSave: Bool { get }
    /// Seconds since 1970: when its offer ends; nil for never.
    var expires: Double? { get }
    var summary: Summary { get }
    /// As it was offered.
    var payload: Payload { get }
}

/// Why the core refuses or ends something.
package enum Refusal: Sendable, Hashable {
    /// The node stops.
    case stopping
    /// So many activities are offered already.
    case tooManyOffers(Int)
    case alreadyOffered
    /// The activity is not offered any more, or Handoff is off for it.
    case notOffered
    /// An exclusive activity is claimed by this device.
    case held(by: PeerName)
    /// There are ``ClaimBounds/claims``.
    case tooManyClaims
    /// The device holds no such claim.
    case noSuchClaim
    /// A newer claim of the same device has taken the claim's place.
    case displaced
    /// The lease of the claim is over.
    case lapsed(wasInterrupted: Bool)
    /// The device released the claim without a reason.
    case givenUp
    /// The user of this device has cancelled the transfer.
    case cancelled
}
