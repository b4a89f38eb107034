// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// The handoffs of the continuing device: a value that decides and is told the time. Each begins with the yes of the
/// user or of a rule, and ends with exactly one of *continued* and *failed*.
///
/// The driver calls ``advance(to:)`` before every other call, and carries out what ``takeEffects()`` returns after it.
/// A simulator drives it in the same way:
///
/// 1. ``accept(_:as:)`` admits a handoff, and ``begin(_:)`` starts it.
/// 2. ``Effect/perform(_:_:)`` orders one step of it. The simulator reports the outcome with ``performed(_:_:)``, which
///    orders the next step. The steps *claim*, *renew*, *commit* and *release* are the requests
///    ``OwnActivities/claim(_:as:by:)``, ``OwnActivities/present(_:by:)``, ``OwnActivities/setContinued(_:by:)`` and
///    ``OwnActivities/release(_:by:because:)`` at the origin. A request whose answer is lost fails after 10 s, and a
///    claim after 15 s, with a failure that ``World/setback(of:)`` calls ``Setback/away``.
/// 3. ``cancel(_:because:)``, ``detach(_:)`` and ``stop(because:)`` may come at any time.
/// 4. ``Effect/continued(_:)`` and the step *fail* are the two ends. ``Effect/ended(_:)`` comes last.
package struct Handoffs<W: World>: Sendable {
    /// A task of the driver, which is the state of the handoff meanwhile. The driver reports the outcome.
    package indirect enum Step: Sendable {
        /// Tells the application that an activity comes. The application is launched if it does not run.
        case announce
        /// Asks the origin for the payload and a claim, which takes the place of the claim before.
        case claim(isAgain: Bool)
        /// Looks at what has come; its outcome is ``Outcome/prepared(_:)``.
        case prepare
        /// Fetches the document; it may fail by ``Outcome/cut(_:_:)``.
        case fetch(TransferRetry)
        /// Makes sure that the origin knows a claim: the one that is held or, if it forgot that, a new one.
        case renew(Absence)
        /// Waits so long.
        case wait(Duration, then: Step)
        /// Tells the origin that the activity is continued, and waits for its answer. For an exclusive activity this
        /// commits the claim. It was asked for first at this time.
        case commit(since: Instant)
        /// Gives the activity to its application; its outcome is ``Outcome/delivered(to:)``.
        case deliver
        /// Waits until the application or whoever asked lets the activity go.
        ///
        /// - Parameter number: rises with each handoff that is held.
        case hold(_ number: UInt64)
        /// Tells everybody here that the handoff has failed.
        case fail(W.Failure)
        /// Releases the claim, if one is held.
        case release(because: W.Failure?)
    }

    /// A device that has gone and is waited for.
    package struct Absence: Sendable {
        let fetching: TransferRetry
        let end: Instant
        let cause: W.Failure
        var tries = 0

        /// The time until the device is tried again.
        var pause: Duration { tries < TransferRetry.quickTries ? TransferRetry.quickPause : TransferRetry.pause }
    }

    package enum Outcome: Sendable {
        case done
        case prepared(HandoffContent)
        /// To the application of this identifier; nil: whoever asked has it.
        case delivered(to: String?)
        /// An attempt to fetch the document has ended.
        case cut(W.Failure, TransferRetry.Attempt)
        case failed(W.Failure)
    }

    package enum Effect: Sendable {
        /// Begins a step. The step before, if it has not ended yet, is given up, and its outcome counts no more.
        case perform(HandoffID, Step)
        /// Ends the step under way early. Its outcome counts.
        case interrupt(HandoffID)
        /// The document stopped coming, and goes on by itself: within so long if it waits for the origin, else now.
        case paused(HandoffID, because: W.Failure, waits: Duration, keeping: UInt64)
        /// The asker is told that the activity is continued. Nothing takes that back.
        case continued(HandoffID)
        /// The handoff is over, and forgotten.
        case ended(HandoffID)
    }

    /// Handoffs under way at once: 32. Each may keep a payload of 64 KiB; one more is refused.
    package static var bound: Int { 32 }
    /// Activities that one application holds: 32. One more takes its oldest away: no application continues so many, and
    /// an origin serves no more to one device (``ClaimBounds/ofOneDevice``).
    package static var boundHeldByOne: Int { 32 }
    /// Activities that all applications hold: 128. One more takes the oldest away.
    package static var boundHeld: Int { 128 }

    /// How long a cancelled step may take to end: 10 s. A disk that hangs takes no longer.
    private static var cancelGrace: Duration { .seconds(10) }

    private var now = Instant(nanoseconds: 0)
    /// The oldest first.
    private(set) var handoffs: [Handoff<W>] = []
    /// Why handoffs end from now on; nil while the node runs.
    private var stopping: W.Failure?
    private var lastNumber: UInt64 = 0
    private var effects: [Effect] = []

    package init() {}

    // MARK: Time

    /// Moves the clock on, and does what is due.
    package mutating func advance(to now: Instant) {
        self.now = now
        for handoff in handoffs {
            guard case .cancelled(let failure, let end) = handoff.fate, end <= now, handoff.mayEnd else { continue }
            fail(handoff.id, because: failure)
        }
    }

    /// When ``advance(to:)`` has to be called at the latest.
    package var nextDeadline: Instant? {
        handoffs.compactMap { handoff in
            if case .cancelled(_, let end) = handoff.fate, handoff.mayEnd { end } else { nil }
        }.min()
    }

    /// The orders since this was called last, the oldest first.
    package mutating func takeEffects() -> [Effect] {
        defer { effects = [] }
        return effects
    }

    // MARK: Life

    /// Takes a handoff on. It begins with ``begin(_:)``, or is forgotten with ``forget(_:)``.
    ///
    /// - Returns: why not; nil if it is taken on.
    package mutating func accept(_ ask: HandoffAsk, as id: HandoffID) -> W.Failure? {
        if let stopping { return stopping }
        let isReceived = handoffs.contains { $0.isReceiving(ask) }
        if ask.folder != nil, isReceived { return W.failure(.alreadyReceiving(ask.title)) }
        guard handoffs.count(where: { $0.holding == nil || $0.application == nil }) < Self.bound else {
            return W.failure(.tooManyHandoffs(Self.bound))
        }
        handoffs.append(Handoff(id: id, ask: ask))
        return nil
    }

    /// Starts a handoff. It fails at once if it was cancelled before, or if the node stops.
    package mutating func begin(_ id: HandoffID) {
        guard let handoff = self[id], handoff.step == nil else { return }
        switch (handoff.fate, stopping) {
        case (.cancelled(let failure, _), _), (_, let failure?): fail(id, because: failure)
        case (.open, nil), (.detached, nil): go(id, to: .announce)
        }
    }

    /// Forgets a handoff that has not begun.
    package mutating func forget(_ id: HandoffID) {
        if let handoff = self[id], handoff.step == nil { end(id) }
    }

    /// The asker has gone, and the handoff goes on without them.
    package mutating func detach(_ id: HandoffID) {
        change(id) { if case .open = $0.fate { $0.fate = .detached } }
    }

    /// Ends a handoff early. What is in place or was committed meanwhile is continued all the same.
    ///
    /// - Parameter failure: why it ends. The reason for which the node stops comes before that.
    package mutating func cancel(_ id: HandoffID, because failure: W.Failure) {
        guard let handoff = self[id] else { return }
        if handoff.holding != nil, handoff.application == nil { return effects.append(.interrupt(id)) }
        if case .cancelled = handoff.fate { return }
        let fate = Handoff<W>.Fate.cancelled(stopping ?? failure, until: now + Self.cancelGrace)
        change(id) { $0.fate = fate }
        if handoff.mayEnd { effects.append(.interrupt(id)) }
    }

    /// The node stops: nothing is begun any more, and what applications hold is let go.
    package mutating func stop(because failure: W.Failure) {
        stopping = failure
        for handoff in handoffs where handoff.holding != nil { effects.append(.interrupt(handoff.id)) }
    }

    /// Ends all handoffs early.
    package mutating func cancelAll(because failure: W.Failure) {
        for handoff in handoffs { cancel(handoff.id, because: failure) }
    }

    /// Whether nothing is under way.
    package var isIdle: Bool { handoffs.isEmpty }

    /// Whether a handoff waits for its origin, which has gone or has no place.
    package func isWaiting(_ id: HandoffID) -> Bool {
        switch self[id]?.step {
        case .renew, .wait: true
        case nil, .announce, .claim, .prepare, .fetch, .commit, .deliver, .hold, .fail, .release: false
        }
    }

    /// The handoffs that go on for somebody who has gone, from an origin into a folder.
    package func detached(from origin: String, into folder: [UInt8]?) -> [HandoffID] {
        handoffs.filter {
            guard folder != nil, case .detached = $0.fate else { return false }
            return $0.holding == nil && $0.ask.origin.id == origin && $0.ask.folder == folder
        }.map(\.id)
    }

    // MARK: Outcomes

    /// A step has ended.
    package mutating func performed(_ id: HandoffID, _ outcome: Outcome) {
        guard let handoff = self[id] else { return }
        if case .cancelled(let failure, _) = handoff.fate, handoff.endsNow(after: outcome) {
            return fail(id, because: failure)
        }
        switch (handoff.step, outcome) {
        case (.release, _): end(id)
        case (.fail(let failure), _): go(id, to: .release(because: failure))
        case (.hold, _): go(id, to: .release(because: nil))
        case (.commit(let start), .failed(let failure)), (.commit(let start), .cut(let failure, _)):
            commitFailed(id, since: start, because: failure)
        case (.wait(_, let next), _): go(id, to: next)
        case (.announce, .done): go(id, to: .claim(isAgain: false))
        // The connection that was there may have been dead for a while. The application knows nothing of it.
        case (.claim(isAgain: false), .failed(let failure)) where W.setback(of: failure) == .lost:
            go(id, to: .claim(isAgain: true))
        case (.claim, .done): go(id, to: .prepare)
        case (.prepare, .prepared(let content)):
            change(id) { $0.path = content.path }
            goOn(id)
        case (.deliver, .delivered(let application)):
            change(id) { $0.application = application }
            goOn(id)
        case (.fetch(let fetching), .cut(let failure, let attempt)):
            fetchFailed(id, fetching, because: failure, after: attempt)
        case (.renew(let absence), .done): go(id, to: .fetch(absence.fetching))
        case (.renew(let absence), .failed(let failure)):
            guard W.setback(of: failure).isAway else { return fail(id, because: failure) }
            guard now + absence.pause < absence.end else { return fail(id, because: absence.cause) }
            var next = absence
            next.tries += 1
            go(id, to: .wait(absence.pause, then: .renew(next)))
        case (.commit, .done):
            if handoff.isCommitting { change(id) { $0.isSettled = true } }
            goOn(id)
        case (.fetch, .done): goOn(id)
        case (_, .failed(let failure)), (_, .cut(let failure, _)): fail(id, because: failure)
        case (_, .done), (_, .prepared), (_, .delivered): break
        }
    }

    /// Does what is left of a handoff.
    private mutating func goOn(_ id: HandoffID) {
        guard let handoff = self[id] else { return }
        guard let part = handoff.path.first else { return hold(id) }
        change(id) { $0.path.removeFirst() }
        switch part {
        case .deliver: go(id, to: .deliver)
        case .fetch: go(id, to: .fetch(TransferRetry()))
        case .commit: go(id, to: .commit(since: now))
        case .tell:
            change(id) { $0.isSettled = true }
            effects.append(.continued(id))
            goOn(id)
        }
    }

    /// After the last part: an application holds the activity, or whoever asked does, or nobody needs the claim.
    private mutating func hold(_ id: HandoffID) {
        guard let handoff = self[id], handoff.application != nil || handoff.ask.keepsClaim && !handoff.isCancelled
        else { return go(id, to: .release(because: nil)) }
        lastNumber += 1
        go(id, to: .hold(lastNumber))
        if stopping != nil { effects.append(.interrupt(id)) }
        // The numbers rise in the order of the holding.
        let held = handoffs.filter { $0.holding != nil && $0.application != nil }
        let ofOne = held.filter { $0.application == handoff.application }
        let excess = ofOne.count > Self.boundHeldByOne ? ofOne : held.count > Self.boundHeld ? held : []
        if let oldest = excess.min(by: { ($0.holding ?? 0) < ($1.holding ?? 0) }) {
            effects.append(.interrupt(oldest.id))
        }
    }

    private mutating func fetchFailed(
        _ id: HandoffID, _ fetching: TransferRetry, because failure: W.Failure, after attempt: TransferRetry.Attempt
    ) {
        var fetching = fetching
        let before = fetching.verdict
        func pause(_ waits: Duration) {
            effects.append(.paused(id, because: failure, waits: waits, keeping: attempt.kept))
        }
        switch fetching.note(attempt, W.setback(of: failure), now: now) {
        case .giveUp: fail(id, because: failure)
        case .describeAgain(let rest):
            pause(.zero)
            go(id, to: .wait(rest, then: .fetch(fetching)))
        case .waitForPlace(let end):
            // A place is asked for again and again, and that is told once.
            if case .waitForPlace = before {} else { pause(end - now) }
            go(id, to: .wait(TransferRetry.pause, then: .fetch(fetching)))
        case .waitForDevice(let end):
            pause(end - now)
            go(id, to: .renew(Absence(fetching: fetching, end: end, cause: failure)))
        }
    }

    /// The origin was not told that the activity is continued.
    ///
    /// If that does not commit the claim, it matters only if nobody here has the activity yet. An answer to a commit
    /// may have been lost: the origin is asked again for as long as it remembers the claim.
    private mutating func commitFailed(_ id: HandoffID, since start: Instant, because failure: W.Failure) {
        guard let handoff = self[id] else { return }
        guard handoff.isCommitting else {
            let isHere = handoff.application != nil || handoff.ask.folder != nil
            return isHere ? goOn(id) : fail(id, because: failure)
        }
        let isUnknown = W.setback(of: failure).isUnanswered
        change(id) { $0.mayHaveMoved = $0.mayHaveMoved || isUnknown }
        let pause = TransferRetry.pause
        guard isUnknown, !handoff.isCancelled, now + pause < start + ClaimBounds.lease else {
            return fail(id, because: failure)
        }
        go(id, to: .wait(pause, then: .commit(since: start)))
    }

    // MARK: Inside

    /// Ends a handoff without the activity. A reason that was given for its end comes before what the last step says.
    private mutating func fail(_ id: HandoffID, because failure: W.Failure) {
        guard let handoff = self[id] else { return }
        var failure = failure
        if case .cancelled(let reason, _) = handoff.fate { failure = reason }
        if handoff.mayHaveMoved { failure = W.failure(.mayHaveMoved(from: handoff.ask.origin)) }
        go(id, to: .fail(failure))
    }

    private mutating func end(_ id: HandoffID) {
        handoffs.removeAll { $0.id == id }
        effects.append(.ended(id))
    }

    private mutating func go(_ id: HandoffID, to step: Step) {
        change(id) { $0.step = step }
        effects.append(.perform(id, step))
    }

    subscript(id: HandoffID) -> Handoff<W>? { handoffs.first { $0.id == id } }

    private mutating func change(_ id: HandoffID, _ body: (inout Handoff<W>) -> Void) {
        if let index = handoffs.firstIndex(where: { $0.id == id }) { body(&handoffs[index]) }
    }
}
