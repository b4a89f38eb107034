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
/// itself, and ends after a while without any. Dispatch does not watch during a turn, because libdispatch arms a read
/// source for one event and again when its handler has returned. New work on the loop ends the wait (``LoopWork``).
///
/// Level-triggered (epoll(7)). Each descriptor has one entry, with two directions that are watched separately. An entry
/// that nobody wants is removed, because `epoll` always reports a hang-up. Watches are added, changed and removed from
/// any thread; handlers run on the loop. There are at most as many entries as open descriptors.
final class ReadinessPoll: Sendable {
    /// A direction of a descriptor.
    enum Direction: Sendable { case reading, writing }

    private struct Watch {
        let handler: @Sendable () -> Void
        var isActive = false
    }

    private struct Entry {
        /// Tells this use of the descriptor's number from earlier ones, whose events may still be on their way.
        let use: UInt32
        var reading: Watch?
        var writing: Watch?
        /// The events that `epoll` watches for; 0 if it does not have the descriptor.
        var events: UInt32 = 0

        subscript(direction: Direction) -> Watch? {
            get {
                switch direction {
                case .reading: reading
                case .writing: writing
                }
            }
            set {
                switch direction {
                case .reading: reading = newValue
                case .writing: writing = newValue
                }
            }
        }

        var wanted: UInt32 {
            (reading?.isActive == true ? ReadinessPoll.input : 0)
                | (writing?.isActive == true ? ReadinessPoll.output : 0)
        }
    }

    private struct State {
        var entries: [Int32: Entry] = [:]
        var uses: UInt32 = 0
        /// Reports that there are events. Nil only during `init`.
        var source: EventSource?
    }

    private static let input = UInt32(baton_epoll_in)
    private static let output = UInt32(baton_epoll_out)
    /// A broken connection concerns both directions: the next read or write then reports why.
    private static let broken = UInt32(baton_epoll_broken)
    /// The greatest number of events taken at a time. The others follow after other work of the loop.
    private static let batch = Int(baton_epoll_batch)

    /// The time that a turn waits for more events, in milliseconds.
    ///
    /// It is longer than a round trip in most networks, so that a conversation is one turn. A shorter time would not
    /// make single events cheaper, because each turn ends with one wait without an event, and Dispatch keeps the thread
    /// for seconds as well.
    static let idleWait: Int32 = 100

    private let descriptor: SharedDescriptor
    /// An eventfd. Each write to it ends the wait.
    private let wake: SharedDescriptor
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
        // Key 0 is free, because the uses of watched descriptors begin at 1.
        let result = baton_epoll_watch(descriptor.rawValue, wake.rawValue, 0, baton_epoll_each_write, 0)
        guard result == 0 else { throw Self.failure(-result) }
        let source = EventSource.readable(descriptor, on: queue) { [weak self] in self?.turn() }
        state.withLock { $0.source = source }
        source.resume()
    }

    private static func descriptor(_ result: Int32) throws(SocketError) -> SharedDescriptor {
        guard result >= 0 else { throw failure(-result) }
        return SharedDescriptor(OwnedDescriptor(takingOwnershipOf: result))
    }

    private static func failure(_ number: Int32) -> SocketError {
        SocketError(Errno(rawValue: number), while: "watching sockets")
    }

    // MARK: - Watches

    /// Adds a watch, which is not active yet. A descriptor has at most one for each direction.
    func add(_ direction: Direction, of number: Int32, handler: @escaping @Sendable () -> Void) {
        state.withLock { state in
            if state.entries[number] == nil {
                state.uses &+= 1
                state.entries[number] = Entry(use: state.uses)
            }
            precondition(state.entries[number]?[direction] == nil, "descriptor \(number) is watched already")
            state.entries[number]?[direction] = Watch(handler: handler)
        }
    }

    /// Lets the handler run.
    ///
    /// - Throws: `outOfResources` if the kernel watches no further descriptor; the handler does not run then.
    func activate(_ direction: Direction, of number: Int32) throws(SocketError) {
        try state.withLock { (state) throws(SocketError) in
            guard var entry = state.entries[number], entry[direction] != nil else { return }
            entry[direction]?.isActive = true
            try updateKernel(&entry, of: number)
            state.entries[number] = entry
        }
    }

    /// Stops the handler from running.
    func deactivate(_ direction: Direction, of number: Int32) {
        state.withLock { state in
            guard var entry = state.entries[number], entry[direction] != nil else { return }
            entry[direction]?.isActive = false
            narrow(&entry, of: number)
            state.entries[number] = entry
        }
    }

    /// Removes a watch. The kernel no longer watches when this returns.
    func remove(_ direction: Direction, of number: Int32) {
        // The objects that the handler holds may end here, and remove watches of their own.
        let dropped = state.withLock { state -> Watch? in
            guard var entry = state.entries[number] else { return nil }
            let dropped = entry[direction]
            entry[direction] = nil
            narrow(&entry, of: number)
            state.entries[number] = entry.reading == nil && entry.writing == nil ? nil : entry
            return dropped
        }
        withExtendedLifetime(dropped) {}
    }

    /// Has the kernel watch for the wanted events of an entry.
    private func updateKernel(_ entry: inout Entry, of number: Int32) throws(SocketError) {
        let wanted = entry.wanted
        guard wanted != entry.events else { return }
        let key = UInt64(entry.use) << 32 | UInt64(UInt32(bitPattern: number))
        let result = baton_epoll_watch(descriptor.rawValue, number, entry.events, wanted, key)
        switch Errno(rawValue: -result) {
        case .noMemory, .noSpace:
            // ENOSPC: the user has reached fs.epoll.max_user_watches (epoll_ctl(2)).
            throw SocketError(.outOfResources, while: "watching a socket", underlyingError: Errno(rawValue: -result))
        case let error:
            precondition(result == 0, "descriptor \(number) cannot be watched: \(error)")
            entry.events = wanted
        }
    }

    /// Does the same for an entry that wants less than before. The kernel does not refuse, because nothing is added.
    private func narrow(_ entry: inout Entry, of number: Int32) {
        do throws(SocketError) {
            try updateKernel(&entry, of: number)
        } catch {
            preconditionFailure("descriptor \(number) cannot be released: \(error)")
        }
    }

    // MARK: - Events, on the loop

    /// Delivers events and does the loop's work, until there has been neither for a while.
    private func turn() {
        work.enter()
        var wait: Int32 = 0
        while true {
            let hasDelivered = deliver(waiting: wait)
            let hasWorked = work.run()
            guard hasDelivered || hasWorked else { break }
            wait = work.prepareToWait(wakingBy: wake) ? idleWait : 0
        }
        work.leave()
    }

    /// Waits for events and runs their handlers. Returns whether there were any; a write to `wake` is one.
    private func deliver(waiting milliseconds: Int32) -> Bool {
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: Self.batch) { events in
            withUnsafeTemporaryAllocation(of: UInt64.self, capacity: Self.batch) { keys in
                // An interrupted call takes nothing. Dispatch then reports the remaining events again.
                let count = Int(
                    baton_epoll_wait(descriptor.rawValue, milliseconds, events.baseAddress, keys.baseAddress))
                // The wait is over, so new work, also that of handlers, needs no write to `wake` from here on.
                if milliseconds > 0 { work.enter() }
                guard count > 0 else { return false }
                work.measure {
                    for index in 0..<count {
                        if events[index] & (Self.input | Self.broken) != 0 { run(.reading, keys[index]) }
                        if events[index] & (Self.output | Self.broken) != 0 { run(.writing, keys[index]) }
                    }
                }
                return true
            }
        }
    }

    private func run(_ direction: Direction, _ key: UInt64) {
        let number = Int32(bitPattern: UInt32(truncatingIfNeeded: key))
        // This returns the watch and not its handler: a function that passes through a generic one is wrapped, which
        // allocates.
        let watch = state.withLock { state -> Watch? in
            guard let entry = state.entries[number], entry.use == UInt32(key >> 32), let watch = entry[direction],
                watch.isActive
            else { return nil }
            return watch
        }
        watch?.handler()
    }
}
