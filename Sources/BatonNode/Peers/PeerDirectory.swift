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

/// Knows the account's other devices: opens what discovery finds, and tells whoever watches.
///
/// Nothing that it cannot open changes any state, and it never dials.
@ControlLoop
final class PeerDirectory {
    /// What can be watched.
    enum Subject: Sendable {
        /// What is known of the other devices.
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
    var table: PeerTable
    private var outdated: OutdatedDevices
    private let epoch: UInt64
    /// Another machine announces itself as this device, and began to do so after this one: the others hear that one.
    private(set) var hasTwin = false
    private var pinned = PinnedInstances()
    private var fullKeyringRetries = FullKeyringRetries()
    private var presenceLog = PresenceLog()
    private var saved: KnownDevices
    /// What is to be written next. A disk that is slow skips what was there in between.
    private var unwritten: (ReplayGuard, KnownDevices)?
    private var writing: Task<Void, Never>?
    private let (heard, hearing) = AsyncStream<OtherwiseKeyed>.makeStream(
        bufferingPolicy: .bufferingNewest(PeerTable.bound))
    /// What the DNS-SD responder of this machine does.
    private(set) var responder = ResponderState.idle
    private var watchers: [UUID: (subject: Subject, signal: AsyncStream<Void>.Continuation)] = [:]
    private let announcements = WaitList<String>(bound: HandoffTable.bound, boundPerKey: HandoffTable.bound)
    private var expiryTimer: BatonEventLoop.Timer?
    private var reminder: BatonEventLoop.Timer?
    private var saveTimer: BatonEventLoop.Timer?
    private var fullKeyringTimer: BatonEventLoop.Timer?

    /// - Parameter epoch: under which this device announces itself; the default is after all that another one could.
    nonisolated init(
        account: CurrentAccount, epoch: UInt64 = .max, store: AccountStore, replayGuard: ReplayGuard,
        known: KnownDevices, discovery: ServiceDiscovery, logger: Logger
    ) {
        self.epoch = epoch
        outdated = OutdatedDevices(keys: account.value.currentKeys)
        self.discovery = discovery
        self.store = store
        self.logger = logger
        self.replayGuard = replayGuard
        self.account = account
        opener = account.opener
        table = PeerTable(known: known, keys: account.value.currentKeys)
        saved = known
        for device in account.value.state.revoked { table.remove(device: device) }
        for device in table.peers.keys where table.isProved(device) { self.replayGuard.prove(device) }
    }

    /// Devices whose advertisements were sealed with other keys than this device's, and while lists are apart every one
    /// that is heard: they may lack revocation lists, or have more. To be iterated once.
    nonisolated var otherwiseKeyed: AsyncStream<OtherwiseKeyed> { heard }

    /// The devices that are announced now.
    var present: [Peer] { table.present }

    /// Every device that is known, the one seen last first.
    var all: [Peer] { table.peers.values.sorted { $0.seen > $1.seen } }

    /// The device of this identifier, if it was seen.
    func peer(_ id: String) -> Peer? {
        // Where it has shown old keys again it is dialled there.
        DeviceID(id).flatMap { outdated[$0] ?? table.peers[$0] }
    }

    /// What a device is called.
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
        let isNews = !table.isProved(device)
        table.prove(device)
        replayGuard.prove(device)
        guard isNews else { return }
        changed()
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
        table.remove(device: device)
        outdated.remove(device)
        changed()
        save()
    }

    /// The account has other lists or keys: revoked devices are forgotten, and what could not be opened is tried again.
    func accountChanged() {
        opener = account.opener
        for device in account.value.state.revoked {
            table.remove(device: device)
            outdated.remove(device)
        }
        table.distrustUnproved(before: account.value.currentKeys.generation)
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
        if reminder == nil {
            reminder = BatonEventLoop.Timer { [weak self] in self?.changed() }
        }
        if reminder?.isScheduled == false { reminder?.schedule(after: delay) }
    }

    /// Waits until a record of a device comes, the same as before or another, at most for a time, or until the task is
    /// cancelled. One wait of each handoff that is under way.
    func awaitAnnouncement(of device: String, atMost pause: Duration) async {
        await announcements.wait(for: device, atMost: pause)
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
            pinned.remove(instance)
            fullKeyringRetries.forget(instance)
            if table.remove(instance: instance) { changed() }
        case .rotationDue, .registered:
            break
        }
    }

    /// Saves what must survive a restart, and ends all watching.
    func stop() async {
        for timer in [expiryTimer, reminder, saveTimer, fullKeyringTimer] { timer?.cancel() }
        for watcher in watchers.values { watcher.signal.finish() }
        watchers = [:]
        announcements.stop()
        hearing.finish()
        save()
        await writing?.value
    }

    private func receive(_ txt: [UInt8], of instance: String, _ interface: UInt32) {
        receive(txt, of: instance, interface) { () throws(AdvertisementRejection) in
            try open(txt, of: instance, interface)
        }
    }

    /// - Parameter open: with the keys that it is tried with.
    private func receive(
        _ txt: [UInt8], of instance: String, _ interface: UInt32,
        open: () throws(AdvertisementRejection) -> (advertisement: Advertisement, keys: GenerationKeys)
    ) {
        let opened: (advertisement: Advertisement, keys: GenerationKeys)
        do {
            opened = try open()
        } catch {
            if error.isByMember { logger.info("an advertisement of this account was refused: \(error)") }
            if case .own(let other) = error, other > epoch { noteTwin() }
            return passOver(instance)
        }
        let current = account.value
        guard !current.isRevoked(opened.advertisement.device) else {
            logger.debug("the advertisement of a revoked device was passed over")
            return passOver(instance)
        }
        let isOutdated = opened.keys.generation < current.generation
        if isOutdated, !table.isProved(opened.advertisement.device) {
            return receiveOutdated(opened, of: instance, interface)
        }
        outdated.remove(opened.advertisement.device)
        let unixTime = UInt64(Date().timeIntervalSince1970)
        let verdict = replayGuard.judge(opened.advertisement, unixTime: unixTime)
        give(verdict, to: instance, of: opened.advertisement.device)
        func receive(lasting secondsLeft: UInt16? = nil) {
            table.receive(
                opened.advertisement, keys: opened.keys, isOutdated: isOutdated, instance: instance,
                interface: interface, now: .now, lasting: secondsLeft, unixTime: unixTime)
            changed()
        }
        switch verdict {
        case .accepted:
            receive()
        case .standing(let secondsLeft):
            receive(lasting: secondsLeft)
        case .duplicate:
            let isBack = table.receiveAgain(
                opened.advertisement, isOutdated: isOutdated, instance: instance, interface: interface, now: .now)
            if isBack { changed() }
        case .expired, .replayed:
            return
        }
        let device = opened.advertisement.device
        announcements.wake(device.description)
        // What it says now, and not what it said once.
        let lacksLists = opened.keys.generation < current.generation && verdict != .duplicate
        if lacksLists { table.note(0, of: device) }
        // Of lists that are apart the same keys seal what a device says that has only one of them.
        if opened.keys.id != current.currentKeys.id || current.state.isApart {
            hearing.yield(OtherwiseKeyed(device: device.description, lacksLists: lacksLists))
        }
        scheduleSave()
    }

    /// What was sealed and signed with this device's own keys, and later than this run began, another machine has made.
    private func noteTwin() {
        guard !hasTwin else { return }
        hasTwin = true
        logger.warning(
            """
            another machine runs with a copy of this one's account folder, and other devices hear that one: run `baton \
            account leave` on one of the two and `baton account join` again, then start the other one's node anew
            """)
    }

    /// Opens a record of an instance with the keys of the account: under a name that has shown a device, with those
    /// that the device has and the newest, and now and then with all.
    ///
    /// Anybody can put a record there, thousands a second, and each key costs some 30 µs: up to 2 ms for all. A device
    /// that gets other keys begins another name (``Announcer/rotate(to:)``); but what its name has shown may have been
    /// another one's, which somebody has put there (see ``FullKeyringRetries``).
    private func open(
        _ txt: [UInt8], of instance: String, _ interface: UInt32
    ) throws(AdvertisementRejection) -> (advertisement: Advertisement, keys: GenerationKeys) {
        let known = knownKeys(of: instance)
        guard !known.isEmpty else { return try opener.open(txt) }
        var keys = [account.value.currentKeys]
        for other in known where !keys.contains(where: { $0.id == other.id }) { keys.append(other) }
        do {
            return try opener.trying(keys).open(txt)
        } catch {
            guard error == .unopenable else { throw error }
            guard fullKeyringRetries.admit(.init(instance: instance, interface: interface, txt: txt), at: .now) else {
                armFullKeyringRetry()
                throw error
            }
        }
        return try opener.open(txt)
    }

    private func armFullKeyringRetry() {
        guard let next = fullKeyringRetries.nextTurn else { return }
        if fullKeyringTimer == nil {
            fullKeyringTimer = BatonEventLoop.Timer { [weak self] in self?.openWaiting() }
        }
        if fullKeyringTimer?.isScheduled == false { fullKeyringTimer?.schedule(at: next.nanoseconds) }
    }

    /// Tries what came too soon after others.
    private func openWaiting() {
        while let record = fullKeyringRetries.next(at: .now) {
            receive(record.txt, of: record.instance, record.interface) { () throws(AdvertisementRejection) in
                try opener.open(record.txt)
            }
        }
        armFullKeyringRetry()
    }

    /// The keys of the devices that an instance has shown, also where one counts no more for now: it may sleep, or
    /// somebody has taken its record away.
    private func knownKeys(of instance: String) -> [GenerationKeys] {
        let shown = table.keys(shownBy: instance)
        guard shown.isEmpty, let device = pinned.device(of: instance), let peer = table.peers[device] else {
            return shown
        }
        return [peer.keys]
    }

    /// An instance has shown nothing that counts: it is not heard for a while. One that has shown a device goes on
    /// being heard, since anybody can put a bad record under its name, and take the good one away before.
    private func passOver(_ instance: String) {
        guard !knownKeys(of: instance).isEmpty else { return discovery.reject(instance) }
        if !pinned.contains(instance) { discovery.follow(instance) }
    }

    /// A device that nothing has proved shows keys of an older generation: it may be dialled, to catch up, and nothing
    /// else is believed.
    private func receiveOutdated(
        _ opened: (advertisement: Advertisement, keys: GenerationKeys), of instance: String, _ interface: UInt32
    ) {
        // It is heard, and not pinned.
        if !pinned.contains(instance) { discovery.follow(instance) }
        let unixTime = UInt64(Date().timeIntervalSince1970)
        // Anybody can send again what it said at another time, from another place.
        guard replayGuard.admits(outdated: opened.advertisement, unixTime: unixTime) else { return }
        let turns = outdated.receive(
            opened.advertisement, keys: opened.keys, instance: instance, interface: interface, now: .now,
            unixTime: unixTime)
        scheduleSave()
        for device in turns { hearing.yield(OtherwiseKeyed(device: device.description, lacksLists: true)) }
    }

    /// Says what an instance is worth that has shown an advertisement of the account.
    ///
    /// Only an instance that shows something newer is pinned, so that no clone is. An instance that may be a clone or
    /// the device itself is heard. An old record shows a clone, unless it is under the device's own name, from some
    /// cache.
    private func give(_ verdict: ReplayGuard.Verdict, to instance: String, of device: DeviceID) {
        // A connection may have shown the device before its first advertisement.
        if table.isProved(device) { replayGuard.prove(device) }
        switch verdict {
        case .accepted, .standing:
            if let displaced = pinned.add(instance, of: device, isProved: table.isProved) {
                discovery.follow(displaced)
            }
            discovery.keep(instance)
        case .duplicate:
            // The responder may have been restarted, or an attacker removed the record and the device put it back.
            let isPinned =
                pinned.contains(instance)
                || pinned.restore(instance, of: device, isProved: table.isProved)
            if isPinned { discovery.keep(instance) } else { discovery.follow(instance) }
        case .expired:
            discovery.follow(instance)
        case .replayed:
            // All that shows a device may be the device, with a record that somebody else has put there.
            guard !pinned.contains(instance), !table.isAllThatShowsADevice(instance) else { return }
            if pinned.device(of: instance) != nil { discovery.follow(instance) } else { discovery.reject(instance) }
            // Anybody can send it thousands of times a second: what changes nothing is no news.
            if table.remove(instance: instance) { changed() }
        }
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

    /// Tells whoever watches to look again.
    func changed() {
        signal(.devices)
        let present = table.peers.filter { $0.value.isPresent }.mapValues(\.name)
        for sentence in presenceLog.update(present, at: .now) { logger.notice("\(sentence)") }
        armExpiry()
    }

    private func signal(_ subject: Subject) {
        for watcher in watchers.values where watcher.subject == subject { watcher.signal.yield() }
    }

    private func armExpiry() {
        if expiryTimer == nil {
            expiryTimer = BatonEventLoop.Timer { [weak self] in self?.expire() }
        }
        guard let next = table.nextExpiry else {
            expiryTimer?.cancel()
            return
        }
        expiryTimer?.schedule(at: next.nanoseconds)
    }

    private func expire() {
        table.expire(now: .now)
        changed()
    }

    private func scheduleSave() {
        if saveTimer == nil {
            saveTimer = BatonEventLoop.Timer { [weak self] in self?.save() }
        }
        switch replayGuard.saveNeed {
        case .none: break
        case .soon: if saveTimer?.isScheduled == false { saveTimer?.schedule(after: Self.saveInterval) }
        case .now: save()
        }
    }

    private func save() {
        let known = table.known
        guard replayGuard.saveNeed != .none || known != saved else { return }
        replayGuard.markSaved()
        saved = known
        unwritten = (replayGuard, known)
        guard writing == nil else { return }
        writing = Task {
            while let (replayGuard, known) = unwritten.take() { await write(replayGuard, known) }
            writing = nil
        }
    }

    @StorageThread
    private func write(_ replayGuard: ReplayGuard, _ known: KnownDevices) {
        do {
            try store.save(replayGuard)
            try store.save(known)
        } catch {
            logger.warning("what was seen of other devices could not be saved: \(error)")
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
