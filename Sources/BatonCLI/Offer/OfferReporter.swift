import Baton
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import SystemPackage

/// Tells what becomes of an offer: JSON events on standard output, or sentences on standard error.
actor OfferReporter {
    private let isJSON: Bool
    private let progress: ProgressLine
    /// By device.
    private var told: [String: ProgressMembers] = [:]

    init(isJSON: Bool, progress: ProgressLine = ProgressLine()) {
        self.isJSON = isJSON
        self.progress = progress
    }

    /// - Parameters:
    ///   - isHandoffOff: the user has switched Handoff off: the offer waits until it is on.
    ///   - path: of the document, where one is offered.
    func offered(_ offer: NodeOffer, at path: FilePath? = nil, isHandoffOff: Bool) async throws {
        let id = ListedActivity.text(ofID: offer.id)
        if isJSON {
            let state = isHandoffOff ? [JSONValue.Member("handoff", "off")] : []
            try emit(
                "offered",
                [JSONValue.Member("id", .string(id)), JSONValue.Member("title", .string(offer.title))]
                    + (path.map { JSONValue.Member.path("path", $0.bytes) } ?? []) + state)
        } else {
            let title = offer.title.isEmpty ? "(no title)" : SafeText.escaped(offer.title)
            let next =
                isHandoffOff
                ? "no device sees it, because Handoff is off: switch it on with `baton handoff on`"
                : "run `baton accept` on another device"
            await progress.say("offering \(title) (\(id.prefix(8))): \(next); ^C withdraws")
        }
    }

    func willSave(_ device: String) async throws {
        guard isJSON else { return }
        try emit("willSave", [Self.device(device)])
    }

    func taken(_ event: WireOfferEvent.Taken) async throws {
        if isJSON {
            try emit("taken", Self.members(event))
        } else {
            await progress.say("\(SafeText.escaped(event.device)) takes it")
        }
    }

    func progressed(_ event: WireProgressReport) async throws {
        if isJSON {
            let now = Instant(nanoseconds: MonotonicClock.nanoseconds())
            try emit(
                "progress",
                [Self.device(event.device)] + told[event.device, default: ProgressMembers()].members(event, now: now))
        } else {
            await progress.update(
                SafeText.escaped(event.device), bytes: event.bytes, total: event.total, bottleneck: event.bottleneck)
        }
    }

    func continued(_ event: WireOfferEvent.Taken) async throws {
        let device = SafeText.escaped(event.device)
        await progress.remove(device)
        told[event.device] = nil
        if isJSON {
            try emit("continued", Self.members(event))
        } else {
            let size = event.bytes > 0 ? " (\(HumanUnits.bytes(event.bytes)))" : ""
            await progress.say("continued by \(device)\(size)")
        }
    }

    func failed(_ failure: WireFailure) async throws {
        let error = CommandError(HandoffError(failure))
        let device = SafeText.escaped(failure.device)
        await progress.remove(device)
        told[failure.device] = nil
        if isJSON {
            try emit(
                "failed",
                [
                    Self.device(failure.device), JSONValue.Member("code", .string(error.code)),
                    JSONValue.Member("message", .string(failure.message)),
                ])
        } else {
            let name = device.isEmpty ? "a device" : device
            await progress.say("\(name) did not get it: \(SafeText.sentence(failure.message))")
        }
    }

    /// The node has stopped, and the next one is waited for.
    func nodeLost() async throws {
        await progress.removeAll()
        told = [:]
        if isJSON {
            try emit("nodeLost", [])
        } else {
            await progress.say("the node has stopped: nothing is offered until one runs again; ^C ends the wait")
        }
    }

    func withdrawn(_ id: [UInt8]) async throws {
        await progress.clear()
        if isJSON {
            try emit("withdrawn", [JSONValue.Member("id", .string(ListedActivity.text(ofID: id)))])
        } else {
            Output.say("withdrawn")
        }
    }

    /// Something that is not an event, such as how a served command ended.
    func note(_ text: String) async {
        await progress.say(text)
    }

    private static func device(_ name: String) -> JSONValue.Member {
        JSONValue.Member("device", .string(name))
    }

    private static func members(_ event: WireOfferEvent.Taken) -> [JSONValue.Member] {
        [
            device(event.device), JSONValue.Member("deviceID", .string(event.deviceID)),
            JSONValue.Member("bytes", .count(event.bytes)),
        ]
    }

    private func emit(_ event: String, _ members: [JSONValue.Member]) throws {
        try Output.line(EventLine.text(event, members))
    }
}
