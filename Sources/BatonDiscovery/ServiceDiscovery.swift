// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop

/// Announces this device on the local network and finds the others, through the system's DNS-SD responder (Avahi).
///
/// Bytes in, bytes out: what a TXT record says is sealed and opened elsewhere. Its owner publishes a record, reads
/// ``events``, and gives a verdict on each instance that shows up: ``keep(_:)`` for one it can read, ``follow(_:)`` for
/// one that may be a copy, ``reject(_:)`` for any other. It never gives up on the responder: one that is absent, dies
/// or hangs is tried again after 1 to 5 s; then all is asked anew, and another name registered
/// (``DiscoveryEvent/rotationDue``).
///
/// The actor runs on a ``BlockingExecutor``, because nearly every `dns_sd` call waits for D-Bus (25 s where the daemon
/// hangs). So the methods that a node calls in passing are `nonisolated`: they put the work there, in order, and
/// return at once.
package actor ServiceDiscovery {
    nonisolated let configuration: DiscoveryConfiguration
    nonisolated let executor: BlockingExecutor
    nonisolated let loop: EventLoop

    /// The executor that was given at the start.
    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// What happens, in order, for one reader. Ends with ``stop()``.
    ///
    /// At most 4096 events wait; a reader that falls behind further misses the oldest.
    package nonisolated let events: AsyncStream<DiscoveryEvent>
    let sink: AsyncStream<DiscoveryEvent>.Continuation

    /// Whether the responder answers now.
    package internal(set) var responder = ResponderState.idle

    // The responder's references.
    private var slots: [SlotID: Slot] = [:]
    private var nextSlot: SlotID = 0
    private var isStarted = false
    private var isStopped = false
    private var backoff: ReconnectBackoff
    private var reconnecting: Timer?

    // Advertising.
    var record: PublishedRecord?
    var period = NamePeriod.unnamed
    var pacer: UpdatePacer
    var pacing: Timer?
    var current: Registration?
    var successor: Registration?
    var rotating: Timer?
    /// The question that has a changed record sent soon, and what ends it.
    var hastening: SlotID?
    var hastened: Timer?
    /// The last names this device had: what it sees of itself.
    var ownNames: [String] = []

    // Browsing.
    var budget: QueryBudget
    var budgeting: Timer?
    var isPumpQueued = false
    var presence: [String: Int] = [:]  // How often (interface and address family) the browse showed an instance.
    var queries: [String: Query] = [:]
    /// Instances of which a record was told and no removal since.
    var told: Set<String> = []
    var rediscovering: Timer?

    /// Makes a discovery that does nothing until ``start()``.
    ///
    /// - Parameters:
    ///   - configuration: times and names.
    ///   - loop: where readiness and timers are noticed; nothing of discovery blocks it.
    ///   - executor: for discovery alone, since it blocks.
    package init(
        configuration: DiscoveryConfiguration = DiscoveryConfiguration(), loop: EventLoop, executor: BlockingExecutor
    ) {
        self.init(configuration: configuration, loop: loop, executor: executor, probes: QueryBudget.Limits().probing)
    }

    /// The same, with another number of queries that may probe at once: for tests, which see what the number is good
    /// for.
    package init(
        configuration: DiscoveryConfiguration, loop: EventLoop, executor: BlockingExecutor, probes: Int
    ) {
        self.configuration = configuration
        var limits = QueryBudget.Limits()
        limits.probing = probes
        limits.turn = configuration.probeTurn
        budget = QueryBudget(limits: limits)
        backoff = ReconnectBackoff(first: configuration.firstRetry)
        self.loop = loop
        self.executor = executor
        pacer = UpdatePacer(now: Self.now)
        (events, sink) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(4096))
    }

    // MARK: - Interface

    /// Begins to look for others, and to announce this device as soon as something is published. Returns when the
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
        connect()
    }

    /// Says goodbye, ends everything and finishes ``events``. It cannot be started again. Where the responder hangs it
    /// waits for the call that is under way, such as the one for a last record.
    package func stop() {
        guard !isStopped else { return }
        isStarted = true
        isStopped = true
        for timer in [reconnecting, pacing, rotating, hastened, budgeting, rediscovering] { timer?.cancel() }
        // First the goodbye: the others should not wait for the end of up to 64 queries.
        for registration in [current, successor] { registration.map { closeSlot($0.slot) } }
        for slot in slots.keys { closeSlot(slot) }
        responder = .idle
        sink.yield(.responder(.idle))
        sink.finish()
    }

    /// Publishes a TXT record in place of the one before, as soon as the update rule allows, under the same name.
    ///
    /// The rule is Bonjour's on macOS: at once after quiet, changes within 250 ms collected, four in a row, then one in
    /// 6 s, and one credit always left for a withdrawal. Of several that wait only the newest is sent, and at once if
    /// any of them was a withdrawal.
    ///
    /// - Parameters:
    ///   - txt: the strings of the record.
    ///   - rationed: those that are sent in their place where the next change would have to wait, so that others know
    ///     how much the record is worth; `nil`: the same.
    ///   - isWithdrawal: whether something that others still see has to disappear: it goes before everything else.
    /// - Throws: ``DiscoveryError`` for strings that do not make a record. Nothing is published then.
    package nonisolated func publish(
        txt: [[UInt8]], whenRationed rationed: [[UInt8]]? = nil, isWithdrawal: Bool = false
    ) throws(DiscoveryError) {
        let record = try Self.record(txt, rationed)
        submit { $0.publish(record, as: isWithdrawal ? .withdrawal : .update) }
    }

    /// Takes a new random instance name: registers it, and removes the old one when the new one is seen.
    ///
    /// - Parameters:
    ///   - txt: the strings of the record under the new name. It should share nothing with the old one, or the two
    ///     names can be linked. The old name keeps its record unless ``publish(txt:whenRationed:isWithdrawal:)`` is
    ///     called meanwhile.
    ///   - rationed: as there.
    /// - Throws: as there.
    package nonisolated func rotate(txt: [[UInt8]], whenRationed rationed: [[UInt8]]? = nil) throws(DiscoveryError) {
        let record = try Self.record(txt, rationed)
        submit { $0.rotate(record) }
    }

    private static func record(
        _ settled: [[UInt8]], _ rationed: [[UInt8]]?
    ) throws(DiscoveryError) -> PublishedRecord {
        PublishedRecord(settled: try TextRecord.encode(settled), rationed: try TextRecord.encode(rationed ?? settled))
    }

    /// The owner can read this instance: every new record of it is told from now on.
    ///
    /// At most 48 at once; instances beyond that are looked at in turn.
    package nonisolated func keep(_ instance: String) {
        submit { $0.keepQuery(instance) }
    }

    /// The owner can read this instance, and so could anybody else who copies it: new records of it are told while it
    /// has a turn among the probes, which comes again and again. One that was kept is kept no longer.
    package nonisolated func follow(_ instance: String) {
        submit { $0.followQuery(instance) }
    }

    /// The owner has no use for this instance: it is not looked at again for 10 minutes.
    package nonisolated func reject(_ instance: String) {
        submit { $0.rejectQuery(instance) }
    }

    /// The owner can read more than before: instances that it rejected are looked at again.
    package nonisolated func reconsider() {
        submit { $0.reconsiderQueries() }
    }

    /// The number of open queries, of the kept and of the probing kind.
    package var queryUsage: (kept: Int, probing: Int) { budget.usage }

    /// Whether instances are announced that had no turn yet: what they say is not known.
    package var isBehind: Bool { budget.isBehind(now: Self.now) }

    // MARK: - Responder

    private func connect() {
        guard !isStopped else { return }
        do throws(ResponderFault) {
            _ = try open(.browse) { () throws(ResponderFault) in
                try ServiceReference.browse(type: configuration.serviceType)
            }
            backoff.succeed(now: Self.now)
            responder = .running
            sink.yield(.responder(.running))
            if !told.isEmpty { rediscovering?.schedule(after: configuration.rediscoveryPeriod) }
            advertise()
        } catch {
            lose(error)
        }
    }

    /// Drops everything that hangs on the responder, and tries again later. References that failed never recover.
    func lose(_ fault: ResponderFault) {
        guard !isStopped else { return }
        for slot in slots.keys { closeSlot(slot) }
        current = nil
        successor = nil
        hastening = nil
        if period == .over { period = .named }  // Its owner is asked again.
        queries = [:]
        presence = [:]
        budget.reset()
        for timer in [pacing, rotating, hastened, budgeting, rediscovering] { timer?.cancel() }
        let delay = backoff.fail(now: Self.now)
        responder = .unavailable(reason: fault.explanation(), retryAfter: delay)
        sink.yield(.responder(responder))
        reconnecting?.schedule(after: delay)
    }

    // MARK: - References

    typealias SlotID = UInt64

    /// What a reference is for.
    enum Role {
        case browse
        case registration
        case query(String)
        case hastening
    }

    private struct Slot {
        var role: Role
        var reference: ServiceReference
        var source: SingleShotSource
    }

    /// Opens a reference and watches it.
    func open(_ role: Role, _ make: () throws(ResponderFault) -> ServiceReference) throws(ResponderFault) -> SlotID {
        let reference = try make()
        let id = nextSlot
        nextSlot += 1
        let source = SingleShotSource(reference.descriptor, on: loop) { [weak self] in
            self?.submit { $0.process(id) }
        }
        guard let source else {
            reference.close()
            throw ResponderFault(operation: "get another descriptor", code: 0)
        }
        slots[id] = Slot(role: role, reference: reference, source: source)
        source.arm()
        return id
    }

    /// Ends a reference. Idempotent.
    func closeSlot(_ id: SlotID) {
        guard let slot = slots.removeValue(forKey: id) else { return }
        slot.source.cancel()
        slot.reference.close()
    }

    /// The reference of a registration that lives.
    func reference(_ id: SlotID) -> ServiceReference? { slots[id]?.reference }

    /// A reference is readable, and only now may it be processed.
    private func process(_ id: SlotID) {
        guard let slot = slots[id] else { return }
        for reply in slot.reference.process() {
            // A reply may end the reference that the next one came from.
            guard slots[id] != nil else { return }
            switch (slot.role, reply) {
            case (.browse, .instance(let name, let domain, let isAdded)): see(name, domain, isAdded: isAdded)
            case (.query(let name), .text(let text, let interface, let isAdded)):
                read(text, of: name, on: interface, isAdded: isAdded)
            case (.registration, .registered(let name)): establish(id, as: name)
            case (.query(let name), .failed): loseQuery(name)
            case (.hastening, _): break  // What it is answered is this device's own record.
            case (.browse, .failed(let fault)), (.registration, .failed(let fault)): lose(fault)
            case (.browse, .text), (.browse, .registered), (.query, .instance), (.query, .registered),
                (.registration, .instance), (.registration, .text):
                break  // No callback of the one kind is ever given to a reference of the other.
            }
        }
        slots[id]?.source.arm()
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
