// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc

/// Calls a handler for the signals that ask the command to stop.
///
/// Without a handler, a signal that was ever watched ends the process. That is why a second signal ends it at once: a
/// user who presses ^C twice does not want to wait. A signal that the process ignores since its start (`nohup`) stays
/// ignored.
enum Interrupts {
    /// Kept: when a queue goes, Dispatch wakes the process once a second from then on (see `GlobalPool`).
    private static let loop = EventLoop(name: "signals")
    /// One for each signal that was ever watched. It stays, because a signal that Dispatch has watched never gets its
    /// default effect back.
    private static let sources = Lock<[Int32: SignalSource]>([:])
    private static let handling = Lock<(signals: [Int32], handler: @Sendable () -> Void)?>(nil)

    /// Replaces the handler.
    ///
    /// - Parameter handler: called with the first signal, on a queue of its own.
    static func watch(_ signals: [Int32] = [SIGINT, SIGTERM], handler: @escaping @Sendable () -> Void) async {
        handling.withLock { $0 = (signals, handler) }
        for signal in signals where sources.withLock({ $0[signal] == nil }) && !SignalSource.isIgnored(signal) {
            let source = await SignalSource.watch(signal, on: loop) { take(signal) }
            sources.withLock { $0[signal] = source }
        }
    }

    /// Removes the handler.
    static func stop() { handling.withLock { $0 = nil } }

    private static func take(_ signal: Int32) {
        guard let (signals, handler) = handling.withLock({ $0.take() }), signals.contains(signal) else {
            _exit(ExitStatus.interrupted.rawValue)
        }
        handler()
    }
}

/// The request to end what a command does: by a signal, or by the command itself.
///
/// The request runs the present action. If there is none, because the command waits for something, it runs the next
/// one.
final class Cancellation: Sendable {
    private struct State {
        var isRequested = false
        var action: (@Sendable () -> Void)?
    }

    private let state = Lock(State())

    var isRequested: Bool { state.withLock { $0.isRequested } }

    /// - Returns: whether there was an action.
    @discardableResult func request() -> Bool {
        let action = state.withLock { state in
            state.isRequested = true
            return state.action.take()
        }
        action?()
        return action != nil
    }

    /// Sets the action; `nil` for none. It runs once, and at once if the end was requested before.
    func setAction(_ action: (@Sendable () -> Void)?) {
        let isRequested = state.withLock { state in
            state.action = state.isRequested ? nil : action
            return state.isRequested
        }
        if isRequested { action?() }
    }
}
