// SPDX-License-Identifier: Apache-2.0

import BatonCore
package import BatonEventLoop
import BatonProtocol
import Glibc

/// Announces this device on the local network and finds the others, through the system's DNS-SD responder (Avahi).
///
/// Bytes in, bytes out: TXT records are sealed and opened elsewhere. The owner publishes a record, reads ``events``,
/// and gives a verdict on each instance that appears. It is ``keep(_:)`` if it can read the record, ``follow(_:)`` if
/// the instance may be a copy, and ``reject(_:)`` otherwise. A query reads the first record of an instance. Later ones
/// are heard from announcements, without a question (``AnnouncementListener``).
///
/// A responder that is absent, dies or hangs is tried again every 2 s, without end. Then everything is queried
/// again, and another name registered (``DiscoveryEvent/rotationDue``).
///
/// The actor runs on a ``BlockingExecutor``, because nearly every `dns_sd` call waits for D-Bus, for 25 s if the daemon
/// hangs. So the methods that a node calls in passing are `nonisolated`: they queue the work in order and return at
/// once.
package actor ServiceDiscovery {
    /// The pause before the responder is tried again: a local connection, which costs nothing.
    private static let reconnectPause = Duration.seconds(2)

    nonisolated let configuration: DiscoveryConfiguration
    nonisolated let executor: BlockingExecutor
    nonisolated let loop: EventLoop

    /// The executor that was given to the initializer.
    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// The events in order, for one reader. Ends with ``stop()``.
    ///
    /// At most 4096 events wait; a reader that falls behind further misses the oldest.
    package nonisolated let events: AsyncStream<DiscoveryEvent>
    let sink: AsyncStream<DiscoveryEvent>.Continuation

    /// Whether the responder answers now.
    package internal(set) var responder = ResponderState.idle

    // The responder's references.
    private var slots: [SlotID: Slot] = [:]
    /// The watches of references that live. The loop suspends a watch when it fires, until the executor has processed
    /// the reference: it would fire without end meanwhile.
    private nonisolated let watches = Lock<[SlotID: ReadinessSource]>([:])
    private var nextSlot: SlotID = 0
    private var isStarted = false
    private var isStopped = false
    private var reconnecting: Timer?

    // Advertising.
    var record: PublishedRecord?
    /// Whether the period that the record belongs to has had a name. It gets no second one: two names with one record,
    /// or with records that share the random values of a period, show that they belong to one device.
    var isNamed = false
    var pacer = UpdatePacer()
    var pacing: Timer?
    var current: Registration?
    var successor: Registration?
    var rotating: Timer?
    /// The question that has a changed record sent soon, and the timer that ends it.
    var hastening: SlotID?
    var hastened: Timer?
    /// The last names of this device, which the browse shows as well.
    var ownNames: [String] = []

    // Browsing.
    var budget = QueryBudget()
    var budgeting: Timer?
    var isPumpQueued = false
    var listener: AnnouncementListener?
    /// The announced texts that are looked at: 1,000 in a second, which is 10 % of a core. It stops a flood of records.
    /// A change that is lost in a flood is heard when it is announced again.
    private nonisolated let heard = Lock(RateLimiter(capacity: 1000, interval: .milliseconds(1)))
    /// The number of interfaces and address families on which the browse shows an instance.
    var presence: [String: Int] = [:]
    var queries: [String: Query] = [:]
    /// The record that was told last, of each instance whose removal was not told since.
    var told: [String: SeenText] = [:]
    var rediscovering: Timer?

    /// Makes a discovery that does nothing until ``start()``.
    ///
    /// - Parameters:
    ///   - configuration: times and names.
    ///   - loop: where sockets and timers are served, without blocking.
    ///   - executor: for discovery alone, because it blocks.
    package init(
        configuration: DiscoveryConfiguration = DiscoveryConfiguration(), loop: EventLoop, executor: BlockingExecutor
    ) {
        self.configuration = configuration
        self.loop = loop
        self.executor = executor
        (events, sink) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(4096))
    }

    // MARK: - Interface

    /// Begins to look for other devices, and to announce this one as soon as something is published. Returns when the
    /// responder was tried once; ``events`` tell the rest. Does nothing the second time.
    package func start() {
        guard !isStarted else { return }
        isStarted = true
        reconnecting = timer { $0.connect() }
        pacing = timer { $0.sendIfDue() }
        rotating = timer { $0.announceRotation() }
        hastened = timer { $0.endHastening() }
        budgeting = timer { $0.pump() }
        rediscovering = timer { $0.forgetLost() }
        listener = AnnouncementListener(type: configuration.serviceType, on: loop) { [weak self] announced, interface in
            let now = Instant(nanoseconds: MonotonicClock.nanoseconds())
            guard let self, heard.withLock({ $0.take(at: now) }) else { return }
            submit { $0.hear(SeenText(text: announced.text, interfaceIndex: interface), of: announced.instance) }
        }
        connect()
    }

    /// Withdraws the registration, ends everything and finishes ``events``. It cannot be started again. If the
    /// responder hangs, this waits for the call that is under way, such as the one for a last record.
    package func stop() {
        guard !isStopped else { return }
        isStarted = true
        isStopped = true
        for timer in [reconnecting, pacing, rotating, hastened, budgeting, rediscovering] { timer?.cancel() }
        // The registration first: other devices should not wait for the end of all queries.
        withdraw()
        for slot in slots.keys { closeSlot(slot) }
        listener = nil
        responder = .idle
        sink.yield(.responder(.idle))
        sink.finish()
    }

    /// Publishes a TXT record in place of the one before, as soon as the update rule allows, under the same name.
    ///
    /// The rule is Bonjour's on macOS (``UpdatePacer``). Of several changes that wait only the newest is sent, and at
    /// once if one of them is a withdrawal.
    ///
    /// - Parameters:
    ///   - txt: the strings of the record.
    ///   - rationed: the strings that are sent instead if the next change would have to wait; `nil` is the same. They
    ///     tell other devices that the record may become old.
    ///   - change: how urgent it is.
    package nonisolated func publish(
        txt: [[UInt8]], whenRationed rationed: [[UInt8]]? = nil, as change: RecordChange = .update
    ) {
        let record = PublishedRecord(settled: TextRecord.encode(txt), rationed: TextRecord.encode(rationed ?? txt))
        submit { $0.publish(record, as: change) }
    }

    /// Takes a new random instance name: registers it, and removes the old one when the new one is seen.
    ///
    /// - Parameters:
    ///   - txt: the strings of the record under the new name. It should share nothing with the old one, or the two
    ///     names can be linked. The old name keeps its record unless ``publish(txt:whenRationed:as:)`` is called
    ///     meanwhile.
    ///   - rationed: as in that method.
    package nonisolated func rotate(txt: [[UInt8]], whenRationed rationed: [[UInt8]]? = nil) {
        let record = PublishedRecord(settled: TextRecord.encode(txt), rationed: TextRecord.encode(rationed ?? txt))
        submit { $0.rotate(record) }
    }

    /// Gives the verdict that the owner can read this instance. Every new record of it is told from now on, and it is
    /// never forgotten while it is on the network.
    package nonisolated func keep(_ instance: String) {
        submit { $0.listen(for: instance, isKept: true) }
    }

    /// Gives the verdict that the owner can read this instance, but that it may be a copy of another. Every new record
    /// is told, but the instance may be forgotten when too many are on the network. It ends ``keep(_:)``.
    package nonisolated func follow(_ instance: String) {
        submit { $0.listen(for: instance, isKept: false) }
    }

    /// Gives the verdict that the owner has no use for this instance. It is not queried again for 10 minutes.
    package nonisolated func reject(_ instance: String) {
        submit { $0.rejectQuery(instance) }
    }

    /// Queries rejected instances again, because the owner can read more than before.
    package nonisolated func reconsider() {
        submit { $0.reconsiderQueries() }
    }

    /// The number of kept instances, and of open queries.
    package var queryUsage: (kept: Int, probing: Int) { budget.usage }

    /// Whether instances are on the network whose record was not queried yet.
    package var isBehind: Bool { budget.isBehind }

    // MARK: - Responder

    private func connect() {
        guard !isStopped else { return }
        do throws(ResponderFault) {
            _ = try open(.browse) { () throws(ResponderFault) in
                try ServiceReference.browse(type: configuration.serviceType)
            }
            responder = .running
            sink.yield(.responder(.running))
            if !told.isEmpty { rediscovering?.schedule(after: configuration.rediscoveryPeriod) }
            if isNamed { announceRotation() } else { advertise() }
        } catch {
            lose(error)
        }
    }

    /// Drops everything that depends on the responder, and tries again later. References that failed never recover.
    func lose(_ fault: ResponderFault) {
        guard !isStopped else { return }
        for slot in slots.keys { closeSlot(slot) }
        current = nil
        successor = nil
        hastening = nil
        queries = [:]
        presence = [:]
        budget.reset()
        for timer in [pacing, rotating, hastened, budgeting, rediscovering] { timer?.cancel() }
        responder = .unavailable(reason: fault.explanation(), retryAfter: Self.reconnectPause)
        sink.yield(.responder(responder))
        reconnecting?.schedule(after: Self.reconnectPause)
    }

    // MARK: - References

    typealias SlotID = UInt64

    /// The purpose of a reference.
    enum Role {
        case browse
        case registration
        case query(String)
        case hastening
    }

    private struct Slot {
        var role: Role
        var reference: ServiceReference
    }

    /// Opens a reference and watches it.
    func open(_ role: Role, _ make: () throws(ResponderFault) -> ServiceReference) throws(ResponderFault) -> SlotID {
        let reference = try make()
        let id = nextSlot
        nextSlot += 1
        slots[id] = Slot(role: role, reference: reference)
        // A duplicate, so that the reference may close its own at any time.
        let number = fcntl(reference.descriptor, F_DUPFD_CLOEXEC, 0)
        if number >= 0 {
            let watch = try? ReadinessSource(reading: OwnedDescriptor(takingOwnershipOf: number), on: loop) {
                [weak self] in
                self?.watches.withLock { $0[id] }?.suspend()
                self?.submit { $0.process(id) }
            }
            watches.withLock { $0[id] = watch }
        }
        guard arm(id) else {
            closeSlot(id)
            throw ResponderFault(operation: "get another descriptor", code: 0)
        }
        return id
    }

    /// Has a reference processed once when it is readable.
    ///
    /// - Returns: false if it cannot be watched, since the process or the kernel has no descriptor left.
    private func arm(_ id: SlotID) -> Bool { (try? watches.withLock { $0[id] }?.resume()) != nil }

    /// Ends a reference. Idempotent.
    func closeSlot(_ id: SlotID) {
        guard let slot = slots.removeValue(forKey: id) else { return }
        watches.withLock { $0.removeValue(forKey: id) }?.cancel()
        slot.reference.close()
    }

    /// The reference of a registration that lives.
    func reference(_ id: SlotID) -> ServiceReference? { slots[id]?.reference }

    /// Processes a reference that is readable.
    private func process(_ id: SlotID) {
        guard let slot = slots[id] else { return }
        for reply in slot.reference.process() {
            // A reply may end the reference that the next one came from.
            guard slots[id] != nil else { return }
            switch (slot.role, reply) {
            case (.browse, .instance(let name, let domain, let interface, let isAdded)):
                see(name, domain, on: interface, isAdded: isAdded)
            case (.query(let name), .text(let text, let interface, let isAdded)):
                if isAdded { read(text, of: name, on: interface) }
            case (.registration, .registered(let name)): establish(id, as: name)
            case (.query(let name), .failed): loseQuery(name)
            case (.hastening, _): break  // The answer is this device's own record.
            case (.browse, .failed(let fault)), (.registration, .failed(let fault)): lose(fault)
            case (.browse, .text), (.browse, .registered), (.query, .instance), (.query, .registered),
                (.registration, .instance), (.registration, .text):
                break  // No reference has the callback of another kind.
            }
        }
        if slots[id] != nil, !arm(id) { lose(ResponderFault(operation: "watch a descriptor", code: 0)) }
    }

    // MARK: - Time and place

    static var now: Duration { .nanoseconds(Int64(clamping: MonotonicClock.nanoseconds())) }

    /// Runs `work` on the executor, in order, without waiting.
    nonisolated func submit(_ work: @escaping @Sendable (isolated ServiceDiscovery) -> Void) {
        executor.submit { self.assumeIsolated { work($0) } }
    }

    private func timer(_ action: @escaping @Sendable (isolated ServiceDiscovery) -> Void) -> Timer {
        Timer(on: loop) { [weak self] in self?.submit(action) }
    }
}
