// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonDiscovery
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import Logging

/// Knows the account's other devices: opens the records that discovery finds, and tells watchers. `Peers` decides.
///
/// Nothing that it cannot open changes any state, and it never dials.
@ControlLoop
final class PeerDirectory {
    /// A thing that can be watched.
    enum Subject: Sendable {
        /// The other devices.
        case devices
        /// Whether the responder is unavailable.
        case responder

        /// Those who watch it at once; one more is refused. The devices are watched by the node's own acceptance by
        /// rules as well, and the responder by every command that offers, accepts or watches.
        var watcherBound: Int {
            switch self {
            case .devices: PeerDirectory.watcherBound
            case .responder: 128
            }
        }
    }

    /// Those who watch the devices at once.
    nonisolated static let watcherBound = 32
    /// Sequence numbers are saved at most this often: a crash lets in no older advertisement than that.
    private static let saveInterval = Duration.seconds(30)

    private let discovery: ServiceDiscovery
    private let account: CurrentAccount
    private var opener: AdvertisementOpener
    private let store: AccountStore
    private let logger: Logger
    private var replayGuard: ReplayGuard
    private(set) var table: PeerTable
    private var outdated = OutdatedDevices()
    private let epoch: UInt64
    /// Another machine announces itself as this device, and began to do so after this one: the others hear that one.
    private(set) var hasTwin = false
    /// Records that are tried with all keys: 20 at once, and then 20 a second, which cost at most 40 ms of CPU.
    private var fullOpenings = RateLimiter(capacity: 20, interval: .milliseconds(50))
    private var saved: KnownDevices
    private var isWriting = false
    /// Called with each device that may lack revocation lists, or have more: its advertisement was sealed with other
    /// keys than this device's. While lists are apart it is every device that is heard.
    var onOtherwiseKeyed: ((OtherwiseKeyed) -> Void)?
    /// The state of this machine's DNS-SD responder.
    private(set) var responder = ResponderState.idle
    private var watchers: [UUID: (subject: Subject, signal: AsyncStream<Void>.Continuation)] = [:]
    /// When watchers look again in any case.
    private var nextReminder: Instant?
    private var nextSave: Instant?
    private var timer = DeadlineTimer()

    /// - Parameter epoch: under which this device announces itself; the default is after all that another one could.
    nonisolated init(
        account: CurrentAccount, epoch: UInt64 = .max, store: AccountStore, replayGuard: ReplayGuard,
        known: KnownDevices, discovery: ServiceDiscovery, logger: Logger
    ) {
        self.epoch = epoch
        self.discovery = discovery
        self.store = store
        self.logger = logger
        self.replayGuard = replayGuard
        self.account = account
        opener = account.opener
        table = PeerTable(known)
        saved = known
        for device in account.value.state.revoked { table.remove(device: device) }
        for device in table.peers.keys where table.isProved(device) { self.replayGuard.prove(device) }
    }

    // MARK: The core

    /// Tells the core of an event, or asks it something, and carries out what follows.
    @discardableResult
    func decide<Value>(_ event: (inout PeerTable) -> Value) -> Value {
        let version = table.version
        table.expire(now: .now)
        let value = event(&table)
        if table.version != version { changed() }
        arm()
        return value
    }

    private func carryOut(_ order: PeerTable.Order) {
        switch order {
        case .keep(let instance): discovery.keep(instance)
        case .follow(let instance): discovery.follow(instance)
        case .reject(let instance): discovery.reject(instance)
        }
    }

    /// Sets the one timer.
    private func arm() {
        let times = [table.nextExpiry, nextReminder, nextSave]
        timer.schedule(at: times.compactMap(\.self).min()) { [weak self] in self?.wake() }
    }

    private func wake() {
        let now = Instant.now
        if let nextReminder, nextReminder <= now {
            self.nextReminder = nil
            changed()
        }
        if let nextSave, nextSave <= now { save() }
        decide { _ in }
    }

    /// The devices that are announced now.
    var present: [Peer] { table.present }

    /// Every device that is known, the one seen last first.
    var all: [Peer] { table.peers.values.sorted { $0.seen > $1.seen } }

    /// The device of this identifier, if it was seen.
    func peer(_ id: String) -> Peer? {
        // Where it has shown old keys again it is dialled there.
        DeviceID(id).flatMap { outdated[$0] ?? table.peers[$0] }
    }

    /// The name of a device.
    func name(of id: String) -> PeerName {
        PeerName(id: id, name: peer(id)?.name ?? String(id.prefix(8)))
    }

    /// A device said which revocation lists it has.
    func note(_ revision: UInt64, of device: DeviceID) {
        table.note(revision, of: device)
    }

    /// A connection has shown that a device is of the account.
    func prove(_ device: String) {
        guard let device = DeviceID(device) else { return }
        replayGuard.prove(device)
        decide { $0.prove(device) }
        save()
    }

    /// Forgets a device that is absent. It is known again when it is seen again.
    ///
    /// - Throws: `invalidRequest` if the device is announced now, or is not known.
    func forget(_ id: String) throws(HandoffError) {
        guard let device = DeviceID(id), let peer = table.peers[device] else {
            throw HandoffError(.invalidRequest, "this device is not known")
        }
        guard !peer.isPresent else {
            throw HandoffError(
                .invalidRequest,
                "it is on the network now, and would be known again at once: stop its node first, or lock it out with"
                    + " `baton devices revoke`")
        }
        outdated.remove(device)
        decide { $0.remove(device: device) }
        save()
    }

    /// The account has other lists or keys: revoked devices are forgotten, and what could not be opened is tried again.
    func accountChanged() {
        opener = account.opener
        let current = account.value
        for device in current.state.revoked { outdated.remove(device) }
        decide { table in
            for device in current.state.revoked { table.remove(device: device) }
            table.distrustUnproved(before: current.currentKeys.generation)
        }
        discovery.reconsider()
        changed()
        save()
    }

    /// A signal for every change, and one at once. Changes that nobody has looked at yet are one signal.
    func watch(_ subject: Subject = .devices) throws(HandoffError) -> AsyncStream<Void> {
        guard watchers.values.count(where: { $0.subject == subject }) < subject.watcherBound else {
            throw HandoffError(.limitExceeded, "\(subject.watcherBound) commands watch already: end one of them")
        }
        let id = UUID()
        let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        watchers[id] = (subject, continuation)
        continuation.onTermination = { [weak self] _ in
            ControlLoop.execute { [weak self] in self?.watchers[id] = nil }
        }
        continuation.yield()
        return stream
    }

    /// Signals whoever watches once more after a while, or sooner: what a device offers may change without an
    /// advertisement.
    func remind(after delay: Duration) {
        let due = Instant.now + delay
        nextReminder = min(nextReminder ?? due, due)
        arm()
    }

    /// Takes an event of discovery.
    func handle(_ event: DiscoveryEvent) {
        switch event {
        case .responder(let state):
            log(state)
            let isNews = state.isUnavailable != responder.isUnavailable
            responder = state
            if isNews { signal(.responder) }
        case .record(let instance, let interface, let txt):
            receive(txt, of: instance, interface)
        case .removed(let instance):
            decide { $0.remove(instance: instance) }
        case .rotationDue, .registered:
            break
        }
    }

    /// Saves what must survive a restart, and ends all watching.
    func stop() async {
        timer.schedule(at: nil) {}
        for watcher in watchers.values { watcher.signal.finish() }
        watchers = [:]
        save()
        while isWriting {
            await withCheckedContinuation { continuation in
                StorageThread.executor.submit { ControlLoop.execute { continuation.resume() } }
            }
        }
    }

    private func receive(_ txt: [UInt8], of instance: String, _ interface: UInt32) {
        let record: HeardAdvertisement
        do throws(AdvertisementError) {
            let opened = try open(txt, of: instance)
            record = HeardAdvertisement(opened.advertisement, under: opened.keys.id)
        } catch {
            if error.isByMember { logger.info("an advertisement of this account was refused: \(error)") }
            if case .own(let other) = error, other > epoch { noteTwin() }
            return carryOut(table.passOver(instance))
        }
        let (device, current) = (record.device, account.value)
        guard !current.isRevoked(device) else {
            logger.debug("the advertisement of a revoked device was passed over")
            return carryOut(table.passOver(instance))
        }
        let isOutdated = record.generation.number < current.generation
        if isOutdated, !table.isProved(device) { return receiveOutdated(record, of: instance, interface) }
        outdated.remove(device)
        let unixTime = UInt64(Date().timeIntervalSince1970)
        let freshness = replayGuard.judge(record.advertisement, unixTime: unixTime)
        // A connection may have proved the device before its first advertisement.
        if table.isProved(device) { replayGuard.prove(device) }
        let (orders, lacksLists) = decide {
            $0.hear(
                record, as: freshness, isOutdated: isOutdated, instance: instance, interface: interface, now: .now,
                unixTime: unixTime)
        }
        for order in orders { carryOut(order) }
        guard let lacksLists else { return }
        // If lists are apart, the same keys seal what a device says that has only one of them.
        if record.generation != current.currentKeys.id || current.state.isApart {
            onOtherwiseKeyed?(OtherwiseKeyed(device: device.description, lacksLists: lacksLists))
        }
        scheduleSave()
    }

    /// Another machine has made an advertisement with this device's keys, later than this run began.
    private func noteTwin() {
        guard !hasTwin else { return }
        hasTwin = true
        logger.warning(
            """
            another machine runs with a copy of this one's account folder, and other devices hear that one: run `baton \
            account leave` on one of the two and `baton account join` again, then start the other one's node anew
            """)
    }

    /// Opens a record of an instance with the keys of the account. If the name has shown a device, only the keys of
    /// that device and the newest are tried, and now and then all.
    ///
    /// Anybody can put a record there, thousands a second, and each key costs some 30 µs: up to 2 ms for all. A device
    /// that gets other keys begins another name (``Announcer/rotate(to:)``). But anybody may have put a copy of another
    /// device's record under the name of a device that slept through a revocation. If no record were tried with all
    /// keys, that one packet would hide the device. A flood can hide it, until its next record or name.
    private func open(
        _ txt: [UInt8], of instance: String
    ) throws(AdvertisementError) -> (advertisement: Advertisement, keys: GenerationKeys) {
        let known = Set(table.records(shownBy: instance).map(\.generation))
        guard !known.isEmpty else { return try opener.open(txt) }
        let current = account.value
        do {
            return try opener.trying(current.keys.filter { $0.id == current.currentKeys.id || known.contains($0.id) })
                .open(txt)
        } catch {
            guard error == .unopenable, fullOpenings.take(at: .now) else { throw error }
        }
        return try opener.open(txt)
    }

    /// A device that no connection has proved shows keys of an older generation: it may be dialled, to catch up, and
    /// nothing else is believed.
    private func receiveOutdated(_ record: HeardAdvertisement, of instance: String, _ interface: UInt32) {
        carryOut(table.follow(instance))
        let unixTime = UInt64(Date().timeIntervalSince1970)
        // Anybody can send again what it said at another time, from another place.
        guard replayGuard.admits(outdated: record.advertisement, unixTime: unixTime) else { return }
        let turns = outdated.receive(
            record, instance: instance, interface: interface, now: .now, unixTime: unixTime)
        scheduleSave()
        for device in turns { onOtherwiseKeyed?(OtherwiseKeyed(device: device.description, lacksLists: true)) }
    }

    /// Says once that this device is not announced and why, and once that this is over.
    private func log(_ state: ResponderState) {
        switch state {
        case .unavailable(let reason, _) where !responder.isUnavailable:
            let reason = reason.hasSuffix(".") ? String(reason.dropLast()) : reason
            logger.warning("this device is not announced and finds no others: \(reason)")
        case .running where responder.isUnavailable:
            logger.notice("this device is announced again")
        case .idle, .running, .unavailable: break
        }
    }

    /// Tells watchers to look again.
    func changed() { signal(.devices) }

    private func signal(_ subject: Subject) {
        for watcher in watchers.values where watcher.subject == subject { watcher.signal.yield() }
    }

    // MARK: The disk

    private func scheduleSave() {
        switch replayGuard.saveNeed {
        case .none: break
        case .soon:
            nextSave = nextSave ?? .now + Self.saveInterval
            arm()
        case .now: save()
        }
    }

    /// Saves what is new, and what has become new meanwhile when that is written.
    private func save() {
        nextSave = nil
        let known = table.known
        guard !isWriting, replayGuard.saveNeed != .none || known != saved else { return }
        replayGuard.markSaved()
        saved = known
        isWriting = true
        StorageThread.executor.submit { [store, replayGuard, logger] in
            do {
                try store.save(replayGuard)
                try store.save(known)
            } catch {
                logger.warning("what was seen of other devices could not be saved: \(error)")
            }
            ControlLoop.execute {
                self.isWriting = false
                self.save()
            }
        }
    }
}

/// A device that has announced itself under other keys than this one's.
struct OtherwiseKeyed: Sendable, Equatable {
    let device: String
    /// It says so now, under keys of an older generation: whatever it said before of the lists that it has, it lacks
    /// some.
    let lacksLists: Bool
}
