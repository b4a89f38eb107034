// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// One fetch that somebody waits for, until it ends in one of three ways, whichever is first: its result, its time, or
/// its cancellation.
final class PendingFetch: Sendable {
    typealias Outcome = Result<SiteAssociation, SiteAssociationError>

    private enum State {
        case new
        case waiting(CheckedContinuation<Outcome, Never>)
        case ended(Outcome)
    }
    private let state = Lock(State.new)

    /// Has the continuation resumed with the outcome, now where it is there already.
    func wait(with continuation: CheckedContinuation<Outcome, Never>) {
        let outcome: Outcome? = state.withLock { state in
            switch state {
            case .new:
                state = .waiting(continuation)
                return nil
            case .waiting:
                preconditionFailure("one waits for a fetch")
            case .ended(let outcome):
                return outcome
            }
        }
        if let outcome { continuation.resume(returning: outcome) }
    }

    /// Ends it. Only the first outcome counts.
    func end(with outcome: Outcome) {
        let continuation: CheckedContinuation<Outcome, Never>? = state.withLock { state in
            switch state {
            case .new:
                state = .ended(outcome)
                return nil
            case .waiting(let continuation):
                state = .ended(outcome)
                return continuation
            case .ended:
                return nil
            }
        }
        continuation?.resume(returning: outcome)
    }

    /// Whether no task waits any longer.
    var isOver: Bool {
        state.withLock { state in
            switch state {
            case .new, .waiting: false
            case .ended: true
            }
        }
    }
}
