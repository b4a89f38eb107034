// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonDiscovery
import BatonEventLoop
import BatonProtocol
import BatonTransport

/// One search of an ``AccountLookup``: hears what is announced, asks who it is of, and is over when somebody has
/// answered or the time is up.
@ControlLoop
final class AccountSearch {
    /// How long it goes on for devices under other lists, after the first has answered.
    nonisolated static let grace = Duration.seconds(1)
    /// How long it takes at the least: who answers first may be who was revoked, and others are heard within that time.
    nonisolated static let settling = Duration.seconds(3)
    /// How often it looks whether all that is announced has been looked at, once its time is up.
    private static let pause = Duration.milliseconds(250)
    /// By how much it may take longer for that.
    nonisolated static let patience = 3

    /// Ends when the search is over.
    nonisolated let end: AsyncStream<Never>

    /// Asks a device what it has.
    typealias Asking =
        @Sendable (
            _ opened: (advertisement: Advertisement, keys: GenerationKeys), _ addresses: [SocketAddress], _ own: Account
        ) async -> AccountLookup.Answer?

    private let opener: JoiningOpener
    private let asking: Asking
    private let over: AsyncStream<Never>.Continuation
    private var outcome: AccountLookup.Outcome
    private var asked = AskedDevices()
    private var questions: [AskedDevices.Question: Task<Void, Never>] = [:]
    private var timer: Timer?
    /// When it is over, but for who is being asked then and for what has not been looked at by then.
    private var deadline: Instant = .now
    /// Before that no answer ends it.
    private var settled: Instant = .now
    /// When it is over even so.
    private var lastDeadline: Instant = .now
    private var isTimeUp = false
    private var isBehind: @Sendable () async -> Bool = { false }
    /// The newest generation of keys that anything was sealed with.
    private var newest: UInt32 = 0

    /// - Parameters:
    ///   - account: this device's part of it.
    ///   - asking: returns nil when the device could not be asked, or did not answer in time.
    nonisolated init(for account: Account, opener: JoiningOpener, asking: @escaping Asking) {
        self.opener = opener
        self.asking = asking
        outcome = AccountLookup.Outcome(account: account)
        (end, over) = AsyncStream.makeStream()
    }

    /// Begins to count the time.
    ///
    /// - Parameter isBehind: whether there is something announced that nobody has looked at yet.
    func begin(within limit: Duration, isBehind: @escaping @Sendable () async -> Bool) {
        let timer = BatonEventLoop.Timer { [weak self] in Task { await self?.timeIsUp() } }
        (deadline, lastDeadline) = (.now + limit, .now + limit * Self.patience)
        settled = min(.now + Self.settling, deadline)
        self.isBehind = isBehind
        timer.schedule(at: deadline.nanoseconds)
        self.timer = timer
    }

    /// Takes what discovery says.
    ///
    /// - Returns: whether an advertisement is none of the account's.
    func hear(_ event: DiscoveryEvent) -> Bool {
        switch event {
        case .record(_, let interface, let txt) where !isTimeUp:
            guard let opened = try? opener.open(txt) else { return false }
            ask(opened, on: interface)
        case .responder(.unavailable(let reason, _)):
            outcome.trouble = reason
            over.finish()
        case _:
            break
        }
        return true
    }

    /// Ends what still runs.
    ///
    /// - Returns: what came of it.
    func stop() async -> AccountLookup.Outcome {
        timer?.cancel()
        isTimeUp = true
        for question in questions.values {
            question.cancel()
            await question.value
        }
        return outcome
    }

    private func ask(_ opened: (advertisement: Advertisement, keys: GenerationKeys), on interface: UInt32) {
        let (advertisement, generation) = (opened.advertisement, opened.keys.generation)
        if generation > newest {
            newest = generation
            // Whoever answered before does not know what this one knows.
            timer?.schedule(at: deadline.nanoseconds)
        }
        let moment = (advertisement.epoch, advertisement.sequence)
        guard let begun = asked.begin(advertisement.device, moment, under: opened.keys.id) else { return }
        if let superseded = begun.superseded { questions[superseded]?.cancel() }
        let addresses = PeerTable.addresses(
            of: advertisement.content.addresses, port: advertisement.content.port, interfaces: [interface])
        let own = outcome.account
        questions[begun.question] = Task {
            let answer = await asking(opened, addresses, own)
            end(begun.question)
            if let answer { take(answer, under: generation) }
            endIfOver()
        }
    }

    private func end(_ question: AskedDevices.Question) {
        asked.end(question)
        questions[question] = nil
    }

    private func take(_ answer: AccountLookup.Answer, under generation: UInt32) {
        outcome.met.append(answer.device)
        do throws(RevocationError) {
            _ = try outcome.account.take(answer.lists.get())
        } catch {
            if outcome.untaken == nil { outcome.untaken = (answer.device, error) }
            // Nor does it shorten the search for those who can tell it.
            return
        }
        // Whoever was revoked has only keys of before, and does not shorten the search for those who know that.
        if !isTimeUp, generation == newest {
            timer?.schedule(at: min(max(.now + Self.grace, settled), deadline).nanoseconds)
        }
    }

    private func timeIsUp() async {
        let isBehind = await isBehind()
        // Something may have been heard meanwhile that gives it more time.
        guard !isTimeUp, timer?.isScheduled != true else { return }
        guard !isBehind || lastDeadline <= .now else {
            timer?.schedule(after: Self.pause)
            return
        }
        outcome.isIncomplete = isBehind
        isTimeUp = true
        endIfOver()
    }

    /// Who was found is waited for: it may be the one who knows most.
    private func endIfOver() {
        if isTimeUp, !asked.isWaiting { over.finish() }
    }
}
