// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// The request to end an offer: by a signal, or after the first device that has all of it.
///
/// The request withdraws the present offer. If there is none, because the command waits for a node, it withdraws the
/// next one.
final class OfferCancellation: Sendable {
    private struct State {
        var isRequested = false
        var withdraw: (@Sendable () -> Void)?
    }

    private let state = Lock(State())

    /// Whether the offer is to end.
    var isRequested: Bool { state.withLock { $0.isRequested } }

    /// Ends the offer.
    func request() {
        let withdraw = state.withLock { state in
            state.isRequested = true
            return state.withdraw.take()
        }
        withdraw?()
    }

    /// Sets the action that withdraws the present offer; `nil` if there is none. It runs once, and at once if the end
    /// was requested before.
    func setWithdrawal(_ withdraw: (@Sendable () -> Void)?) {
        let isRequested = state.withLock { state in
            state.withdraw = state.isRequested ? nil : withdraw
            return state.isRequested
        }
        if isRequested { withdraw?() }
    }
}
