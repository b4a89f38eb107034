// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// What the user or a rule said yes to.
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

/// What has come, as the core looks at it.
package struct HandoffContent: Sendable {
    package var isExclusive = false
    /// Whether a document has to be fetched.
    package var hasDocument = false
    /// Whether nobody takes the activity over.
    package var isLook = false

    package init(isExclusive: Bool = false, hasDocument: Bool = false, isLook: Bool = false) {
        self.isExclusive = isExclusive
        self.hasDocument = hasDocument
        self.isLook = isLook
    }

    /// What is to be done. An exclusive activity is given to nobody before its claim was committed. Any other document
    /// counts as continued when it is in place, however long its origin takes to hear of it.
    var path: [HandoffPart] {
        if isLook { return [.deliver, .tell] }
        if isExclusive { return (hasDocument ? [.fetch] : []) + [.commit, .deliver, .tell] }
        return hasDocument ? [.deliver, .fetch, .tell, .commit] : [.deliver, .commit, .tell]
    }
}

/// A part of a handoff after its preparation.
enum HandoffPart: Sendable {
    case deliver
    case fetch
    case commit
    case tell
}

/// How far the fetching of a document is.
struct Fetching: Sendable {
    var retry: TransferRetry
    var describesAnew = false
    /// Whether the last attempt found no place at the origin, which was told.
    var waitsForPlace = false
}

/// One handoff on the continuing device.
struct Handoff<W: World>: Sendable {
    enum Stage: Sendable {
        case admitted
        case announcing
        case claiming(isAgain: Bool)
        case preparing
        case fetching(Fetching)
        /// Between two attempts, of which the next begins after a pause.
        case resting(Fetching)
        /// The origin has gone, for this reason: its claim is asked for.
        case renewing(Fetching, TransferRetry.Wait, W.Failure)
        /// The same, in the pause before it is asked for again.
        case pausing(Fetching, TransferRetry.Wait, W.Failure)
        case committing(first: Instant)
        /// In the pause before the commit is asked for again.
        case pausingCommit(first: Instant)
        case delivering
        /// - Parameter number: rises with each handoff that is held.
        case holding(_ number: UInt64)
        case failing(W.Failure)
        case releasing(W.Failure?)
    }

    enum Fate: Sendable {
        case open
        /// Whoever asked has gone, and it goes on without them.
        case detached
        /// It ends as soon as it may, at the latest then.
        case cancelled(W.Failure, until: Instant)
    }

    let id: HandoffID
    let ask: HandoffAsk
    var stage = Stage.admitted
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

    var hasBegun: Bool { if case .admitted = stage { false } else { true } }

    var isCancelled: Bool { if case .cancelled = fate { true } else { false } }

    /// The number of what is held.
    var holding: UInt64? { if case .holding(let number) = stage { number } else { nil } }

    /// Whether the handoff has failed, or nothing is left of it but to release its claim.
    private var isEnding: Bool {
        switch stage {
        case .failing, .releasing: true
        case .admitted, .announcing, .claiming, .preparing, .fetching, .resting, .renewing, .pausing, .committing,
            .pausingCommit, .delivering, .holding:
            false
        }
    }

    /// Whether the step under way is a commit that decides who has the activity: the delivery comes after it.
    var isCommitting: Bool { if case .committing = stage { path.contains(.deliver) } else { false } }

    /// Whether a cancellation ends the step under way.
    var mayEnd: Bool { hasBegun && !isSettled && !isEnding && !isCommitting && holding == nil }

    /// Whether a cancellation takes effect after this outcome. A document that is in place is continued, and an
    /// application that has an activity without a document keeps it.
    func endsNow(after outcome: Handoffs<W>.Outcome) -> Bool {
        switch (stage, outcome) {
        case (.fetching, .done): path.first == .commit
        case (.delivering, .delivered(let application)):
            path.first == .fetch || path.first == .commit && application == nil
        case (.delivering, _): !isSettled
        case (.announcing, _), (.claiming, _), (.preparing, _), (.fetching, _), (.resting, _), (.renewing, _),
            (.pausing, _), (.pausingCommit, _):
            true
        case (.admitted, _), (.committing, _), (.holding, _), (.failing, _), (.releasing, _): false
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
