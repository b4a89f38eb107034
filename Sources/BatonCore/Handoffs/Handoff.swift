// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// An activity that the user or a rule said yes to.
package struct HandoffAsk: Sendable {
    package let origin: PeerName
    package let activity: ActivityID?
    package let title: String
    /// The resolved path of the folder that a document goes to; nil asks for no document.
    package let folder: [UInt8]?
    /// Whether whoever asked opens continuation streams: the claim is kept until they go.
    package let keepsClaim: Bool

    package init(
        origin: PeerName, activity: ActivityID?, title: String = "", folder: [UInt8]? = nil, keepsClaim: Bool = false
    ) {
        self.origin = origin
        self.activity = activity
        self.title = title
        self.folder = folder
        self.keepsClaim = keepsClaim
    }
}

/// The parts of a payload that the core looks at.
package struct HandoffContent: OptionSet, Sendable {
    /// The activity moves once.
    package static let exclusive = HandoffContent(rawValue: 1)
    /// A document has to be fetched.
    package static let document = HandoffContent(rawValue: 2)
    /// Nobody takes the activity over.
    package static let look = HandoffContent(rawValue: 4)

    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// What is to be done. An exclusive activity is given to nobody before its claim was committed. Any other document
    /// counts as continued when it is in place, however long its origin takes to hear of it.
    var path: [HandoffPart] {
        if contains(.look) { return [.deliver, .tell] }
        if contains(.exclusive) { return (contains(.document) ? [.fetch] : []) + [.commit, .deliver, .tell] }
        return contains(.document) ? [.deliver, .fetch, .tell, .commit] : [.deliver, .commit, .tell]
    }
}

/// A part of a handoff after its preparation.
enum HandoffPart: Sendable {
    case deliver
    case fetch
    case commit
    case tell
}

/// One handoff on the continuing device.
struct Handoff<W: World>: Sendable {
    enum Fate: Sendable {
        case open
        /// The asker has gone, and the handoff goes on without them.
        case detached
        /// It ends as soon as it may, at the latest then.
        case cancelled(W.Failure, until: Instant)
    }

    let id: HandoffID
    let ask: HandoffAsk
    /// The step under way; nil before it has begun.
    var step: Handoffs<W>.Step?
    var fate = Fate.open
    /// What is left to be done; empty before it is known.
    var path: [HandoffPart] = []
    /// The application that has the activity.
    var application: String?
    /// Whether an answer to a commit may have been lost.
    var mayHaveMoved = false
    /// Whether the claim of an exclusive activity was committed, or whoever asked was told that the activity is
    /// continued: nothing takes that back.
    var isSettled = false

    var isCancelled: Bool { if case .cancelled = fate { true } else { false } }

    /// The number of what is held.
    var holding: UInt64? { if case .hold(let number) = step { number } else { nil } }

    /// Whether the handoff has failed, or nothing is left of it but to release its claim.
    private var isEnding: Bool {
        switch step {
        case .fail, .release: true
        case nil, .announce, .claim, .prepare, .fetch, .renew, .wait, .commit, .deliver, .hold: false
        }
    }

    /// Whether the step under way is a commit that decides who has the activity: the delivery comes after it.
    var isCommitting: Bool { if case .commit = step { path.contains(.deliver) } else { false } }

    /// Whether a cancellation ends the step under way.
    var mayEnd: Bool { step != nil && !isSettled && !isEnding && !isCommitting && holding == nil }

    /// Whether a cancellation takes effect after this outcome. A document that is in place is continued, and an
    /// application that has an activity without a document keeps it.
    func endsNow(after outcome: Handoffs<W>.Outcome) -> Bool {
        switch (step, outcome) {
        case (.fetch, .done): path.first == .commit
        case (.deliver, .delivered(let application)):
            path.first == .fetch || path.first == .commit && application == nil
        case (.deliver, _): !isSettled
        case (.announce, _), (.claim, _), (.prepare, _), (.fetch, _), (.renew, _), (.wait, _): true
        case (nil, _), (.commit, _), (.hold, _), (.fail, _), (.release, _): false
        }
    }

    /// Whether it fetches the same activity into the same folder for somebody who waits. A handoff that has told its
    /// end writes nothing more.
    func isReceiving(_ ask: HandoffAsk) -> Bool {
        if case .detached = fate { return false }
        return !isSettled && !isEnding && self.ask.origin.id == ask.origin.id && self.ask.activity == ask.activity
            && self.ask.folder == ask.folder
    }
}
