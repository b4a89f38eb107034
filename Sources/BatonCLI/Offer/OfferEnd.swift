// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// What ends an offer: a signal, or the first device that has it whole. It withdraws what stands, or what stands next;
/// while a node is waited for, nothing does.
final class OfferEnd: Sendable {
    private struct State {
        var hasCome = false
        var withdraw: (@Sendable () -> Void)?
    }

    private let state = Lock(State())

    /// Whether it has come.
    var hasCome: Bool { state.withLock { $0.hasCome } }

    /// It has come.
    func come() {
        let withdraw = state.withLock { state in
            state.hasCome = true
            return state.withdraw.take()
        }
        withdraw?()
    }

    /// An offer stands, which is withdrawn like this, once; `nil`: none does.
    func stands(_ withdraw: (@Sendable () -> Void)?) {
        let hasCome = state.withLock { state in
            state.withdraw = state.hasCome ? nil : withdraw
            return state.hasCome
        }
        if hasCome { withdraw?() }
    }
}
