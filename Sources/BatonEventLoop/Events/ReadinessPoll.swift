// SPDX-License-Identifier: Apache-2.0

import CLinux
import Dispatch
import SystemPackage

/// What a loop watches descriptors with: one `epoll` of its own, of which Dispatch watches nothing but whether it has
/// something to tell.
///
/// Dispatch's own sources are not used for what can hang up. When both directions of a descriptor are over
/// (`EPOLLHUP`), libdispatch walks its lists of that descriptor's sources on its own thread, while a source that is
/// cancelled on its queue takes itself off them: whoever resets connections fast enough ends the process (libdispatch,
/// `event_epoll.c` and `_dispatch_source_invoke2`). An `epoll` never hangs up.
///
/// What Dispatch tells begins a turn of the loop. Each trip through Dispatch wakes three threads: its own, the one that
/// it lends to the loop, and its own again, to watch on; that would be most of what a stranger's connection costs. So a
/// turn keeps its thread while events and work come, waits for the next by itself, and gives the thread back when
/// nothing has come for a while. Dispatch does not watch meanwhile: libdispatch arms a read source for one event, and
/// again when its handler has returned. What is put on the loop ends the wait (``LoopWork``).
///
/// Level-triggered (epoll(7)). One entry for each descriptor, whose two directions are watched apart; an entry that
/// nobody wants is taken out, for `epoll` cannot be told to keep silent about a hang-up. Watches are added, changed and
/// removed from any thread; handlers run on the loop. As many entries as there are open descriptors at the most.
final class ReadinessPoll: Sendable {
    /// A direction of a descriptor.
    enum Direction: Sendable { case reading, writing }

    private struct Watch {
        let handler: @Sendable () -> Void
        var isActive = false
    }

    private struct Entry {
        /// Tells this use of the descriptor's number from those before, of which events may still be on their way.
        let use: UInt32
        var reading: Watch?
        var writing: Watch?
        /// What `epoll` has been told; 0 where it does not know the descriptor.
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
        /// Tells when there is something to deliver. Nil only while the poll is made.
        var source: EventSource?
    }

    private static let input = UInt32(baton_epoll_in)
    private static let output = UInt32(baton_epoll_out)
    /// A connection that broke concerns both directions: whoever reads or writes then learns why.
    private static let broken = UInt32(baton_epoll_broken)
    /// Events that are taken at a time; the rest come right after, when others on the loop have had their turn.
    private static let batch = Int(baton_epoll_batch)

    /// For how many milliseconds a turn waits: longer than an answer takes in most networks, so that a conversation is
    /// one turn. A shorter time would make no lonely event cheaper, for each turn ends with one wait in vain; and
    /// Dispatch would keep the thread for seconds as well.
    static let patience: Int32 = 100

    private let descriptor: SharedDescriptor
    /// An eventfd of which each write ends the wait.
    private let wake: SharedDescriptor
    private let work: LoopWork
    private let patience: Int32
    private let state = Lock(State())

    /// - Parameters:
    ///   - queue: the loop's.
    ///   - work: what else the loop does.
    ///   - patience: for how many milliseconds a turn waits.
    /// - Throws: `outOfResources` where no descriptor is free.
    init(on queue: DispatchQueue, doing work: LoopWork, patience: Int32) throws(SocketError) {
        self.work = work
        self.patience = patience
        descriptor = try Self.descriptor(baton_epoll_create())
        wake = try Self.descriptor(baton_event_create())
        // The uses of descriptors that are watched begin at 1.
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

    /// Takes a watch in, which is not active yet. A descriptor has one for each direction at most.
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

    /// Lets the handler run, or not.
    func setActive(_ isActive: Bool, _ direction: Direction, of number: Int32) {
        state.withLock { state in
            guard var entry = state.entries[number], entry[direction] != nil else { return }
            entry[direction]?.isActive = isActive
            tell(&entry, of: number)
            state.entries[number] = entry
        }
    }

    /// Takes a watch out: the kernel watches no more when this returns.
    func remove(_ direction: Direction, of number: Int32) {
        // What the handler holds may end here, and take out watches of its own.
        let dropped = state.withLock { state -> Watch? in
            guard var entry = state.entries[number] else { return nil }
            let dropped = entry[direction]
            entry[direction] = nil
            tell(&entry, of: number)
            state.entries[number] = entry.reading == nil && entry.writing == nil ? nil : entry
            return dropped
        }
        withExtendedLifetime(dropped) {}
    }

    private func tell(_ entry: inout Entry, of number: Int32) {
        let wanted = entry.wanted
        guard wanted != entry.events else { return }
        let key = UInt64(entry.use) << 32 | UInt64(UInt32(bitPattern: number))
        let result = baton_epoll_watch(descriptor.rawValue, number, entry.events, wanted, key)
        switch Errno(rawValue: -result) {
        case .noMemory, .noSpace:
            // Nobody hears of this one until it is asked for again: deadlines end whoever waits for it.
            return
        case let error:
            precondition(result == 0, "descriptor \(number) cannot be watched: \(error)")
            entry.events = wanted
        }
    }

    // MARK: - Events, on the loop

    /// Delivers events and does the loop's work in turns, until there has been neither for a while.
    private func turn() {
        work.attend()
        var wait: Int32 = 0
        while true {
            let hasDelivered = deliver(waiting: wait)
            let hasWorked = work.run()
            guard hasDelivered || hasWorked else { break }
            wait = work.mayWait(until: wake) ? patience : 0
        }
        work.leave()
    }

    /// Waits for events, and runs their handlers. Returns whether there were any; a write to `wake` is one.
    private func deliver(waiting milliseconds: Int32) -> Bool {
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: Self.batch) { events in
            withUnsafeTemporaryAllocation(of: UInt64.self, capacity: Self.batch) { keys in
                // An interrupted call takes nothing; what there is stays, and the source says so again.
                let count = Int(
                    baton_epoll_take(descriptor.rawValue, milliseconds, events.baseAddress, keys.baseAddress))
                // The wait is over: what is added from here on, by handlers too, needs no write to `wake`.
                if milliseconds > 0 { work.attend() }
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
        // The watch, not its handler: a function that passes through a generic one is wrapped, which takes memory each
        // time.
        let watch = state.withLock { state -> Watch? in
            guard let entry = state.entries[number], entry.use == UInt32(key >> 32), let watch = entry[direction],
                watch.isActive
            else { return nil }
            return watch
        }
        watch?.handler()
    }
}
