// SPDX-License-Identifier: Apache-2.0

import CLinux

/// The armed timers of a loop, and the descriptor that reports the first of them (timerfd_create(2)).
///
/// The descriptor is set only for a time before the one that it has. So arming costs no system call as a rule, and the
/// loop wakes once in vain when the first timer was cancelled.
final class LoopTimers: Sendable {
    private struct Armed {
        let deadline: UInt64
        /// Rises with each arming.
        let number: UInt64
        let handler: @Sendable () -> Void
    }

    private struct State {
        var armed: [ObjectIdentifier: Armed] = [:]
        var lastNumber: UInt64 = 0
        /// The time that the descriptor has.
        var reported = UInt64.max
    }

    let descriptor: SharedDescriptor
    private let state = Lock(State())

    init(_ descriptor: SharedDescriptor) {
        self.descriptor = descriptor
    }

    /// Arms a timer, in place of the time set before; nil disarms it.
    func set(_ timer: ObjectIdentifier, at deadline: UInt64?, _ handler: @escaping @Sendable () -> Void) {
        state.withLock { state in
            guard let deadline else {
                state.armed[timer] = nil
                return
            }
            state.lastNumber += 1
            state.armed[timer] = Armed(deadline: deadline, number: state.lastNumber, handler: handler)
            report(deadline, &state)
        }
    }

    func isArmed(_ timer: ObjectIdentifier) -> Bool { state.withLock { $0.armed[timer] != nil } }

    /// Runs the handlers of the timers that are due, in the order of their times. Called on the loop.
    func fire() {
        let now = MonotonicClock.nanoseconds()
        let due = state.withLock { state in
            state.armed.filter { $0.value.deadline <= now }
                .sorted { ($0.value.deadline, $0.value.number) < ($1.value.deadline, $1.value.number) }
                .map { (timer: $0.key, number: $0.value.number) }
        }
        for (timer, number) in due {
            // A handler before this one may have cancelled the timer, or armed it anew.
            let handler = state.withLock { state in
                state.armed[timer]?.number == number ? state.armed.removeValue(forKey: timer)?.handler : nil
            }
            handler?()
        }
        state.withLock { state in
            state.reported = .max
            if let first = state.armed.values.map(\.deadline).min() { report(first, &state) }
        }
    }

    private func report(_ deadline: UInt64, _ state: inout State) {
        guard deadline < state.reported else { return }
        state.reported = deadline
        // 0 would mean never.
        let result = baton_timer_set(descriptor.rawValue, max(1, deadline))
        precondition(result == 0, "a timer cannot be set: \(result)")
    }
}
