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
    /// Returns what a failure means to a device that takes an activity over.
    static func setback(of failure: Failure) -> Setback
}

/// What a failure at the origin, or on the way there, means to a handoff.
package enum Setback: Sendable {
    /// Nothing would change if it were tried again.
    case final
    /// The connection ended.
    case lost
    /// The origin could not be reached, did not answer in time, or stops.
    case away
    /// The origin does not know the claim.
    case unclaimed
    /// The origin does not offer the activity.
    case unoffered
    /// The origin has no place at the moment.
    case noPlace
    /// The document is another version now.
    case changed

    /// Whether a device that is waited for may still fail so.
    package var isAway: Bool {
        switch self {
        case .lost, .away, .unclaimed, .unoffered, .noPlace: true
        case .final, .changed: false
        }
    }

    /// Whether the origin may have done what it was asked for.
    var isUnanswered: Bool { self == .lost || self == .away }
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
    /// The same activity is being received into the same folder. Two handoffs would each fetch all of it, and only one
    /// could have the name.
    case alreadyReceiving(String)
    /// So many handoffs are under way already.
    case tooManyHandoffs(Int)
    /// The origin did not answer the commit of a claim, and nobody here has the activity.
    case mayHaveMoved(from: PeerName)
}
