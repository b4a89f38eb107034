// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc

/// Calls a handler for the signals that ask the command to stop, for as long as this object lives.
///
/// The newest object for a signal gets it. Without one, the signal has its usual effect. A signal that the process
/// ignores since its start (`nohup`) stays ignored. A second signal ends the process at once: a user who presses ^C
/// twice does not want to wait.
final class Interrupts: Sendable {
    /// Kept: when a queue goes, Dispatch wakes the process once a second from then on (see `GlobalPool`).
    private static let loop = EventLoop(name: "signals")
    /// One for each signal that was ever watched. It stays, because a signal that Dispatch has watched never gets its
    /// default effect back.
    private static let sources = Lock<[Int32: SignalSource]>([:])
    /// What the objects that live do, the newest last.
    private static let living = Lock<[Entry]>([])

    private struct Entry: Sendable {
        let owner: ObjectIdentifier
        let signals: [Int32]
        let handle: @Sendable (Int32) -> Void
    }

    private init() {}

    deinit {
        let owner = ObjectIdentifier(self)
        Self.living.withLock { $0.removeAll { $0.owner == owner } }
    }

    /// - Parameter handler: called with the first signal, and with each `SIGTSTP`, on a queue of its own.
    static func watch(
        _ signals: [Int32] = [SIGINT, SIGTERM], handler: @escaping @Sendable (Int32) -> Void
    ) async -> Interrupts {
        let interrupts = Interrupts()
        let isFirst = Lock(true)
        let entry = Entry(owner: ObjectIdentifier(interrupts), signals: signals) { signal in
            let goesOn = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst || signal == SIGTSTP
            }
            guard goesOn else { _exit(ExitStatus.interrupted.rawValue) }
            handler(signal)
        }
        living.withLock { $0.append(entry) }
        for signal in signals where sources.withLock({ $0[signal] == nil }) && !SignalSource.isIgnored(signal) {
            let source = await SignalSource.watch(signal, on: loop) { take(signal) }
            sources.withLock { $0[signal] = source }
        }
        return interrupts
    }

    private static func take(_ signal: Int32) {
        if let newest = living.withLock({ $0.last { $0.signals.contains(signal) } }) {
            newest.handle(signal)
        } else if signal == SIGTSTP {
            kill(getpid(), SIGSTOP)
        } else {
            _exit(ExitStatus.interrupted.rawValue)
        }
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

    func request() {
        let action = state.withLock { state in
            state.isRequested = true
            return state.action.take()
        }
        action?()
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
