// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import SystemPackage

/// Reports the events of a handoff: as JSON, or as sentences on standard error with the result on standard output.
///
/// With `--stream` standard output carries only the stream, and events go to standard error.
actor AcceptReporter {
    let output: EventOutput
    private var accepted: Instant?
    private var started: Instant?
    /// Whether the application shows the progress itself. Then this command prints none for people.
    private var isShown = false
    /// The bytes of earlier transfers that were here when this one began.
    private var resumed: UInt64?
    /// The bytes that have arrived, while the document is not in place.
    private var reached: UInt64 = 0
    /// The part of ``reached`` that another `baton accept` can start from.
    private var kept: UInt64 = 0

    init(_ output: EventOutput) {
        self.output = output
    }

    func accepts() {
        accepted = Instant(nanoseconds: MonotonicClock.nanoseconds())
    }

    /// - Parameter application: the application that continues it; `nil` if this command does.
    func willContinue(
        _ event: WireAcceptEvent.WillContinue, _ activity: ListedActivity, in application: WireInstalledApplication?
    ) async throws {
        started = started ?? Instant(nanoseconds: MonotonicClock.nanoseconds())
        isShown = event.shown
        // The application of a page is known when the page has arrived, after the first event.
        let application = event.hasApplication ? event.application : application
        let what = event.hasApplication ? "it" : "\(activity.shownTitle) from \(SafeText.escaped(event.device))"
        let place = application.map { " in \(SafeText.escaped($0.name))" } ?? ""
        try await output.tell(
            "willContinue",
            [.text("type", event.type), .text("device", event.device), .flag("shown", event.shown)]
                + Self.members(application), isShown ? nil : "continuing \(what)\(place)")
    }

    /// The activity is no longer offered. The command looks for another one.
    func replaced(because error: HandoffError) async {
        if !output.isJSON { await output.say("\(SafeText.escaped(error.message)): looking for another") }
    }

    /// - Parameter isResult: whether the user asked for the payload, rather than for a document.
    func payload(_ payload: WireActivityPayload, _ activity: ListedActivity, isResult: Bool) async throws {
        let rendering = PayloadRendering(payload, device: activity.device, deviceID: activity.deviceID)
        if output.isJSON {
            let elapsed = accepted.map { Instant(nanoseconds: MonotonicClock.nanoseconds()) - $0 } ?? .zero
            try await output.tell("payload", try rendering.members() + [.init("elapsed", .real(elapsed / .seconds(1)))])
        } else if isResult {
            for line in try rendering.lines() { try Output.line(line) }
        }
    }

    func progressed(_ event: WireProgressReport, _ activity: ListedActivity) async throws {
        reached = event.bytes
        kept = event.hasKeptBytes ? event.keptBytes : event.bytes
        resumed = resumed ?? event.resumedBytes
        try await output.progressed(
            event, of: activity.shownTitle, isShown: !isShown, [.count("resumed", event.resumedBytes)])
    }

    /// The transfer stopped, or the document or an older copy changed. It goes on by itself.
    func interrupted(_ event: WireAcceptEvent.Interrupted, _ activity: ListedActivity) async throws {
        let hadCome = reached > 0
        (reached, kept) = (event.keptBytes, event.keptBytes)
        // How much of the new version is here is known only when it goes on.
        let isTold = event.waitsSeconds > 0 && (hadCome || kept > 0)
        let next =
            event.waitsSeconds > 0
            ? "waiting for \(SafeText.escaped(activity.device)) for up to \(Self.minutes(event.waitsSeconds)); ^C ends"
            : "going on with what is not here yet"
        try await output.tell(
            "interrupted",
            [
                .text("code", CommandError(HandoffError(event.cause)).code), .text("message", event.cause.message),
                .count("kept", event.keptBytes), .count("waits", event.waitsSeconds),
            ], "\(SafeText.sentence(event.cause.message))\(isTold ? "; \(keeping)" : ""): \(next)")
    }

    private var keeping: String { kept > 0 ? "\(HumanUnits.bytes(kept)) of it are kept" : "nothing of it is kept" }

    private static func minutes(_ seconds: UInt32) -> String {
        seconds < 90 ? "\(seconds) s" : "\((seconds + 30) / 60) minutes"
    }

    func continued(_ event: WireAcceptEvent.Continued) async throws {
        await output.removeAll()
        // Nothing is left that another accept could start from.
        reached = 0
        let path = Array(event.path)
        if output.isJSON {
            try await output.tell(
                "continued",
                (path.isEmpty
                    ? []
                    : JSONMember.path("path", path) + [
                        .count("bytes", event.bytes),
                        .count("received", event.hasReceivedBytes ? event.receivedBytes : nil),
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

    /// Reports the failure in JSON. For people the end of the command does that.
    func failed(_ error: CommandError) async throws {
        await output.removeAll()
        let isTold = error.code == CommandError.interrupted.code && reached > 0
        let sentence = kept > 0 ? "\(keeping): `baton accept` again goes on from there" : keeping
        try await output.tell(
            "failed",
            [.text("code", error.code), .text("message", error.message)] + (isTold ? [.count("kept", kept)] : []),
            isTold ? sentence : nil)
    }

    private func summary(_ event: WireAcceptEvent.Continued) -> String {
        guard let started else { return HumanUnits.bytes(event.bytes) }
        let time = Instant(nanoseconds: MonotonicClock.nanoseconds()) - started
        return Self.summary(event, before: resumed ?? 0, in: time)
    }

    /// - Parameters:
    ///   - before: the bytes that were here before.
    ///   - time: the time since the accept.
    static func summary(_ event: WireAcceptEvent.Continued, before: UInt64, in time: Duration) -> String {
        let size = HumanUnits.bytes(event.bytes)
        let (seconds, attoseconds) = time.components
        let elapsed = Double(seconds) + Double(attoseconds) / 1e18
        guard elapsed > 0.05 else { return size }
        let tenths = Int((elapsed * 10).rounded())
        let duration = seconds < 60 ? "\(tenths / 10).\(tenths % 10) s" : HumanUnits.duration(time)
        let missing = event.bytes - min(event.bytes, before)
        let start = "\(size)\(before > 0 ? " (\(HumanUnits.bytes(before)) were here)" : "") in \(duration)"
        // Bytes that were copied here, or compressed, say nothing about the rate of the link.
        guard event.hasReceivedBytes, event.receivedBytes < missing / 10 * 9 else {
            return "\(start), \(HumanUnits.rate(Double(missing) / elapsed))"
        }
        return "\(start), of which \(HumanUnits.bytes(event.receivedBytes)) had to come"
    }

    private static func members(_ application: WireInstalledApplication?) -> [JSONMember] {
        guard let application else { return [] }
        return [
            .text("application", application.identifier), .text("applicationName", application.name),
        ]
    }
}
