// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import SystemPackage

/// Tells what becomes of a handoff: JSON events, or sentences on standard error and the result on standard output.
///
/// With `--stream` standard output is the stream's alone, and events go to standard error.
actor AcceptReporter {
    private let isJSON: Bool
    private let isStream: Bool
    private let progress: ProgressLine
    private var accepted: Instant?
    private var started: Instant?
    private var hasFailed = false
    /// The application shows by itself that it is waiting, so that people need not be told here as well.
    private var isShown = false
    /// Bytes of an earlier transfer: those that were here when this one began.
    private var resumed: UInt64?
    /// Bytes that are there by now, and not in place yet.
    private var reached: UInt64 = 0
    /// Bytes of them that another `baton accept` begins with.
    private var kept: UInt64 = 0
    private var told = ProgressMembers()

    init(isJSON: Bool, isStream: Bool, progress: ProgressLine = ProgressLine()) {
        self.isJSON = isJSON
        self.isStream = isStream
        self.progress = progress
    }

    /// The node is asked for it from now on.
    func accepts() {
        accepted = Instant(nanoseconds: MonotonicClock.nanoseconds())
    }

    /// - Parameter application: that it goes to; `nil` where the command continues it.
    func willContinue(
        _ event: WireAcceptEvent.WillContinue, _ activity: ListedActivity, in application: WireInstalledApplication?
    ) async throws {
        started = started ?? Instant(nanoseconds: MonotonicClock.nanoseconds())
        isShown = event.shown
        // A page's is known behind the first event, when the page has come.
        let application = event.hasApplication ? event.application : application
        if isJSON {
            try emit(
                "willContinue",
                [
                    JSONValue.Member("type", .string(event.type)), JSONValue.Member("device", .string(event.device)),
                    JSONValue.Member("shown", .boolean(event.shown)),
                ] + Self.members(application))
        } else if !isShown {
            let what = event.hasApplication ? "it" : "\(activity.shownTitle) from \(SafeText.escaped(event.device))"
            let place = application.map { " in \(SafeText.escaped($0.name))" } ?? ""
            await progress.say("continuing \(what)\(place)")
        }
    }

    /// What was being continued is not offered any more: whatever else there is, now or in time, is looked for.
    func replaced(because error: HandoffError) async {
        if !isJSON { await progress.say("\(SafeText.escaped(error.message)): looking for another") }
    }

    /// - Parameter isResult: the payload is what the user asked for, rather than what comes with a document.
    func payload(_ payload: WireActivityPayload, _ activity: ListedActivity, isResult: Bool) throws {
        let rendering = PayloadRendering(payload, device: activity.device, deviceID: activity.deviceID)
        if isJSON {
            let elapsed = accepted.map { Instant(nanoseconds: MonotonicClock.nanoseconds()) - $0 } ?? .zero
            try emit("payload", try rendering.members() + [JSONValue.Member("elapsed", .real(elapsed / .seconds(1)))])
        } else if isResult {
            for line in try rendering.lines() { try Output.line(line) }
        }
    }

    func progressed(_ event: WireProgressReport, _ activity: ListedActivity) async throws {
        reached = event.bytes
        kept = event.hasKeptBytes ? event.keptBytes : event.bytes
        if isJSON {
            let now = Instant(nanoseconds: MonotonicClock.nanoseconds())
            try emit(
                "progress",
                [JSONValue.Member("resumed", .count(event.resumedBytes))] + told.members(event, now: now))
        } else {
            resumed = resumed ?? event.resumedBytes
            guard !isShown else { return }
            await progress.update(
                activity.shownTitle, bytes: event.bytes, total: event.total, bottleneck: event.bottleneck)
        }
    }

    /// The document stopped coming, or it or an older copy has changed since a part of it came, and goes on by itself.
    func interrupted(_ event: WireAcceptEvent.Interrupted, _ activity: ListedActivity) async throws {
        let error = CommandError(HandoffError(event.cause))
        let hadCome = reached > 0
        (reached, kept) = (event.keptBytes, event.keptBytes)
        if isJSON {
            try emit(
                "interrupted",
                [
                    JSONValue.Member("code", .string(error.code)),
                    JSONValue.Member("message", .string(event.cause.message)),
                    JSONValue.Member("kept", .count(event.keptBytes)),
                    JSONValue.Member("waits", .count(UInt64(event.waitsSeconds))),
                ])
            return
        }
        // How much there is of another version of the document shows when it goes on.
        let isTold = event.waitsSeconds > 0 && (hadCome || kept > 0)
        let next =
            event.waitsSeconds > 0
            ? "waiting for \(SafeText.escaped(activity.device)) for up to \(Self.minutes(event.waitsSeconds)); ^C ends"
            : "going on with what is not here yet"
        await progress.say("\(SafeText.sentence(event.cause.message))\(isTold ? "; \(keeping)" : ""): \(next)")
    }

    private var keeping: String { kept > 0 ? "\(HumanUnits.bytes(kept)) of it are kept" : "nothing of it is kept" }

    private static func minutes(_ seconds: UInt32) -> String {
        seconds < 90 ? "\(seconds) s" : "\((seconds + 30) / 60) minutes"
    }

    func continued(_ event: WireAcceptEvent.Continued) async throws {
        await progress.removeAll()
        // Nothing is left that another accepting could go on with.
        reached = 0
        let path = Array(event.path)
        if isJSON {
            try emit(
                "continued",
                (path.isEmpty
                    ? []
                    : JSONValue.Member.path("path", path) + [
                        JSONValue.Member("bytes", .count(event.bytes)),
                        JSONValue.Member("received", event.hasReceivedBytes ? .count(event.receivedBytes) : .null),
                    ])
                    + Self.members(event.hasApplication ? event.application : nil))
            return
        }
        if event.hasApplication { Output.say("\(SafeText.escaped(event.application.name)) has it") }
        if !path.isEmpty {
            if Terminal.isTerminal(.standardOutput) {
                try Output.line(SafeText.escaped(path: path))
            } else {
                try Output.line(bytes: path)
            }
            Output.say(summary(event))
        }
    }

    /// Says in JSON what went wrong; people are told where the command ends.
    func failed(_ error: CommandError) async throws {
        await progress.removeAll()
        guard !hasFailed else { return }
        hasFailed = true
        let isTold = error.status == .interrupted && reached > 0
        if isJSON {
            try emit(
                "failed",
                [JSONValue.Member("code", .string(error.code)), JSONValue.Member("message", .string(error.message))]
                    + (isTold ? [JSONValue.Member("kept", .count(kept))] : []))
        } else if isTold {
            await progress.say(kept > 0 ? "\(keeping): `baton accept` again goes on from there" : keeping)
        }
    }

    private func summary(_ event: WireAcceptEvent.Continued) -> String {
        guard let started else { return HumanUnits.bytes(event.bytes) }
        let time = Instant(nanoseconds: MonotonicClock.nanoseconds()) - started
        return Self.summary(event, before: resumed ?? 0, in: time)
    }

    /// - Parameters:
    ///   - before: bytes of it that were here.
    ///   - time: since it was accepted.
    static func summary(_ event: WireAcceptEvent.Continued, before: UInt64, in time: Duration) -> String {
        let size = HumanUnits.bytes(event.bytes)
        let (seconds, attoseconds) = time.components
        let elapsed = Double(seconds) + Double(attoseconds) / 1e18
        guard elapsed > 0.05 else { return size }
        let tenths = Int((elapsed * 10).rounded())
        let duration = seconds < 60 ? "\(tenths / 10).\(tenths % 10) s" : HumanUnits.duration(time)
        let missing = event.bytes - min(event.bytes, before)
        let start = "\(size)\(before > 0 ? " (\(HumanUnits.bytes(before)) were here)" : "") in \(duration)"
        // A rate of what was copied here, or compressed, is none of the link.
        guard event.hasReceivedBytes, event.receivedBytes < missing / 10 * 9 else {
            return "\(start), \(HumanUnits.rate(Double(missing) / elapsed))"
        }
        return "\(start), of which \(HumanUnits.bytes(event.receivedBytes)) had to come"
    }

    private static func members(_ application: WireInstalledApplication?) -> [JSONValue.Member] {
        guard let application else { return [] }
        return [
            JSONValue.Member("application", .string(application.identifier)),
            JSONValue.Member("applicationName", .string(application.name)),
        ]
    }

    private func emit(_ event: String, _ members: [JSONValue.Member]) throws {
        let line = EventLine.text(event, members)
        if isStream { Output.say(line) } else { try Output.line(line) }
    }
}
