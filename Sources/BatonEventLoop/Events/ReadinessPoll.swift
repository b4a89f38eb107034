// SPDX-License-Identifier: Apache-2.0

import CLinux
import Dispatch
import SystemPackage

/// The `epoll` set with which a loop watches its descriptors. Dispatch watches only whether this set has events.
///
/// Dispatch's own sources are not used for descriptors that can hang up. On `EPOLLHUP`, libdispatch walks its list of a
/// descriptor's sources on its own thread, while a source that is cancelled on its queue removes itself from that list.
/// So a peer that resets connections fast enough could crash the process (libdispatch, `event_epoll.c` and
/// `_dispatch_source_invoke2`). An `epoll` set never hangs up.
///
/// A report of Dispatch begins a turn of the loop. Each trip through Dispatch wakes three threads, which would be most
/// of the cost of a refused connection. So a turn keeps its thread while events and work come, waits for more by
/// itself, and ends after a while without any. A turn in which only timers fired ends at once. Dispatch does not watch
/// during a turn, because libdispatch arms a read source for one event and again when its handler has returned. New
/// work on the loop ends the wait (``LoopWork``).
///
/// Level-triggered (epoll(7)). A descriptor that is watched for nothing is removed from the set, because `epoll` always
/// reports a hang-up. Watches are added, changed and removed from any thread; handlers run on the loop. There are at
/// most as many watches as open descriptors.
final class ReadinessPoll: Sendable {
    /// A descriptor, which has one watch at a time, and what to do when it is ready.
    final class Watch: @unchecked Sendable {  // reason: `events` is read and written under the lock of the set
        let descriptor: SharedDescriptor
        let onReadable: @Sendable () -> Void
        let onWritable: @Sendable () -> Void
        /// The events that `epoll` watches for; 0 if it does not have the descriptor.
        fileprivate var events: UInt32 = 0

        init(
            _ descriptor: SharedDescriptor, onReadable: @escaping @Sendable () -> Void,
            onWritable: @escaping @Sendable () -> Void
        ) {
            self.descriptor = descriptor
            self.onReadable = onReadable
            self.onWritable = onWritable
        }
    }

    private struct State {
        /// By a key that is never used again, because events of earlier watches may still be on their way.
        var watches: [UInt64: Watch] = [:]
        var lastKey: UInt64 = 0
        /// Reports that there are events. Nil only during `init`.
        var source: EventSource?
    }

    private static let input = UInt32(baton_epoll_in)
    private static let output = UInt32(baton_epoll_out)
    /// A broken connection concerns both directions: the next read or write then reports why.
    private static let broken = UInt32(baton_epoll_broken)
    /// The greatest number of events taken at a time. The others follow after other work of the loop.
    private static let batch = Int(baton_epoll_batch)
    /// The keys of the descriptors of this set: watches have keys from 1 on.
    private static let (wakeKey, timerKey) = (UInt64(0), UInt64.max)

    private let descriptor: SharedDescriptor
    /// An eventfd. Each write to it ends the wait.
    private let wake: SharedDescriptor
    let timers: LoopTimers
    private let work: LoopWork
    private let idleWait: Int32
    private let state = Lock(State())

    /// Makes the set and starts to watch it.
    ///
    /// - Parameters:
    ///   - queue: the loop's queue.
    ///   - work: the other work of the loop.
    ///   - idleWait: the time that a turn waits for more events, in milliseconds.
    /// - Throws: `outOfResources` if no descriptor is free.
    init(on queue: DispatchQueue, doing work: LoopWork, idleWait: Int32) throws(SocketError) {
        self.work = work
        self.idleWait = idleWait
        descriptor = try Self.descriptor(baton_epoll_create())
        wake = try Self.descriptor(baton_event_create())
        timers = LoopTimers(try Self.descriptor(baton_timer_create()))
        for (own, key) in [(wake, Self.wakeKey), (timers.descriptor, Self.timerKey)] {
            let result = baton_epoll_watch(descriptor.rawValue, own.rawValue, 0, baton_epoll_each_write, key)
            guard result == 0 else { throw Self.failure(-result) }
        }
        let source = EventSource.readable(descriptor, on: queue) { [weak self] in self?.turn() }
        state.withLock { $0.source = source }
    }

    private static func descriptor(_ result: Int32) throws(SocketError) -> SharedDescriptor {
        guard result >= 0 else { throw failure(-result) }
        return SharedDescriptor(OwnedDescriptor(takingOwnershipOf: result))
    }

    private static func failure(_ number: Int32) -> SocketError {
        SocketError(Errno(rawValue: number), while: "watching sockets")
    }

    // MARK: - Watches

    /// Adds a watch, which is for nothing yet. Returns its key.
    func add(_ watch: Watch) -> UInt64 {
        state.withLock { state in
            state.lastKey += 1
            state.watches[state.lastKey] = watch
            return state.lastKey
        }
    }

    /// Lets the handler of a direction run. Does nothing without the watch.
    ///
    /// - Throws: `outOfResources` if the kernel watches no further descriptor; the handler does not run then.
    func resume(_ direction: ReadinessSource.Direction, of key: UInt64) throws(SocketError) {
        let result = state.withLock { state in
            state.watches[key].map { set($0.events | Self.events(of: direction), of: $0, key) } ?? 0
        }
        // ENOSPC: the user has reached fs.epoll.max_user_watches (epoll_ctl(2)).
        guard result == 0 else {
            throw SocketError(.outOfResources, while: "watching a socket", underlyingError: Errno(rawValue: -result))
        }
    }

    /// Stops the handler of a direction from running. Does nothing without the watch.
    func suspend(_ direction: ReadinessSource.Direction, of key: UInt64) {
        state.withLock { state in
            if let watch = state.watches[key] { narrow(watch.events & ~Self.events(of: direction), of: watch, key) }
        }
    }

    /// Removes a watch. The kernel no longer watches when this returns. Does nothing without the watch.
    func remove(_ key: UInt64) {
        // The objects that the handlers hold may end here, and remove watches of their own.
        let dropped = state.withLock { state in
            let watch = state.watches.removeValue(forKey: key)
            if let watch { narrow(0, of: watch, key) }
            return watch
        }
        withExtendedLifetime(dropped) {}
    }

    private static func events(of direction: ReadinessSource.Direction) -> UInt32 {
        switch direction {
        case .reading: input
        case .writing: output
        }
    }

    /// Has the kernel watch for other events. Returns 0, or the kernel's refusal for lack of resources.
    private func set(_ events: UInt32, of watch: Watch, _ key: UInt64) -> Int32 {
        guard events != watch.events else { return 0 }
        let number = watch.descriptor.rawValue
        let result = baton_epoll_watch(descriptor.rawValue, number, watch.events, events, key)
        switch Errno(rawValue: -result) {
        case .noMemory, .noSpace: break
        case let error:
            precondition(result == 0, "descriptor \(number) cannot be watched: \(error)")
            watch.events = events
        }
        return result
    }

    /// Has the kernel watch for fewer events, which it does not refuse, because nothing is added.
    private func narrow(_ events: UInt32, of watch: Watch, _ key: UInt64) {
        let result = set(events, of: watch, key)
        precondition(result == 0, "a descriptor cannot be released: \(Errno(rawValue: -result))")
    }

    // MARK: - Events, on the loop

    /// Delivers events and does the loop's work, until there has been neither for a while.
    private func turn() {
        work.enter()
        var wait: Int32 = 0
        // Bytes are often followed by others, and a timer is not.
        var waits = false
        while true {
            let events = deliver(waiting: wait)
            let hasWorked = work.run()
            guard events != .none || hasWorked else { break }
            waits = waits || events == .descriptors
            wait = waits && work.prepareToWait(wakingBy: wake) ? idleWait : 0
        }
        work.leave()
    }

    private enum Events {
        case none
        case timers
        case descriptors
    }

    /// Waits for events and runs their handlers.
    private func deliver(waiting milliseconds: Int32) -> Events {
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: Self.batch) { events in
            withUnsafeTemporaryAllocation(of: UInt64.self, capacity: Self.batch) { keys in
                // An interrupted call takes nothing. Dispatch then reports the remaining events again.
                let count = Int(
                    baton_epoll_wait(descriptor.rawValue, milliseconds, events.baseAddress, keys.baseAddress))
                // The wait is over, so new work, also that of handlers, needs no write to `wake` from here on.
                if milliseconds > 0 { work.enter() }
                guard count > 0 else { return .none }
                var delivered = Events.timers
                work.measure {
                    for index in 0..<count {
                        let (key, events) = (keys[index], events[index])
                        guard key != Self.timerKey else {
                            timers.fire()
                            continue
                        }
                        delivered = .descriptors
                        if events & (Self.input | Self.broken) != 0 { watch(key, for: Self.input)?.onReadable() }
                        if events & (Self.output | Self.broken) != 0 { watch(key, for: Self.output)?.onWritable() }
                    }
                }
                return delivered
            }
        }
    }

    /// A watch that is still for these events.
    private func watch(_ key: UInt64, for events: UInt32) -> Watch? {
        state.withLock { state in state.watches[key].flatMap { $0.events & events != 0 ? $0 : nil } }
    }
}
