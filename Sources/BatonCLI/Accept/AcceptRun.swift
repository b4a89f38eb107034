// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonDocuments
import BatonMessages
import BatonProtocol
import BatonTransport
import Glibc
import SystemPackage

/// One handoff, from the node's first event to its last.
struct AcceptRun: Sendable {
    let client: NodeClient
    let handoff: NodeHandoff
    let activity: ListedActivity
    let reporter: AcceptReporter
    let interruption: AcceptInterruption
    let isStream: Bool
    /// Whether a document is fetched, so that the payload is not the result.
    let isFetching: Bool
    /// The bytes of the document to print, in place of accepting it.
    var range: ByteRange?
    /// The file of a folder that ``range`` is about; empty for the document itself.
    var file: [UInt8] = []

    struct Outcome: Sendable {
        var payload = WireActivityPayload()
        var continued = WireAcceptEvent.Continued()
    }

    func run() async throws -> Outcome {
        do {
            let outcome = try await follow()
            if !interruption.hasHappened { return outcome }
        } catch {
            if !interruption.hasHappened { throw error }
        }
        throw CommandError.interrupted
    }

    private func follow() async throws -> Outcome {
        var outcome = Outcome()
        var events = handoff.events.makeAsyncIterator()
        while true {
            let event: WireAcceptEvent?
            do {
                event = try await events.next()
            } catch {
                guard error.code == .connectionLost else { throw error }
                throw CommandError(
                    .noNode, "the node has stopped; start `baton node` and accept it again")
            }
            guard let event else {
                throw CommandError.failed("the node ended the handoff without saying how; see `baton node log`")
            }
            if try await handle(event, &outcome) {
                if isStream { try await pumpStream() }
                if let range { try await printBytes(range) }
                await handoff.finish()
                return outcome
            }
        }
    }

    private func handle(_ event: WireAcceptEvent, _ outcome: inout Outcome) async throws -> Bool {
        switch event.kind {
        case .willContinue(let event):
            try await reporter.willContinue(event, activity, in: handoff.application)
        case .payload(let payload):
            outcome.payload = payload
            try await reporter.payload(
                payload, activity,
                isResult: !isStream && !isFetching && range == nil && handoff.application == nil)
        case .progress(let progress):
            try await reporter.progressed(progress, activity)
        case .interrupted(let interruption):
            try await reporter.interrupted(interruption, activity)
        case .continued(let continued):
            outcome.continued = continued
            try await reporter.continued(continued)
            return true
        case .choose(let choice):
            guard NumberedChoice.isPossible else {
                await handoff.cancel()
                throw ApplicationChooser.ambiguous(choice.applications)
            }
            // Do not wait for this: a read from a terminal ends only with a line, and the handoff may end before.
            Task {
                if let chosen = try? await ApplicationChooser.ask(choice.applications) {
                    // If the handoff is over, it has reported the reason.
                    try? await handoff.choose(chosen)
                } else {
                    // The end of the input is like ^C.
                    interruption.cancellation.request()
                }
            }
        case .failed(let failure):
            throw HandoffError(failure)
        case nil:
            break
        }
        return false
    }

    /// Prints bytes of the document as they arrive, all of one version.
    private func printBytes(_ range: ByteRange) async throws {
        interruption.cancellation.setAction { [client] in Task { await client.close() } }
        let count = try await client.readDocument(range.start..<range.end, ofHandoff: handoff.id, ofFile: file) {
            try Output.bytes(Array($0))
        }
        if count == 0, range.start > 0 {
            let size = file.isEmpty ? activity.size.map { ": it has \(HumanUnits.bytes($0))" } : nil
            throw CommandError.usage("the range begins where the document has ended\(size ?? "")")
        }
    }

    private func pumpStream() async throws {
        let stream = try await client.openContinuationStream(ofHandoff: handoff.id) { [interruption] stream in
            interruption.cancellation.setAction { Task { await stream.reset(.cancelled) } }
        }
        let pumping = Task { try await StreamPump(stream).run() }
        interruption.cancellation.setAction { [handoff] in
            Task {
                await stream.reset(.cancelled)
                pumping.cancel()
                await handoff.cancel()
            }
        }
        try await pumping.value
    }
}

/// A range of bytes of a document: `START-END`, counted from 0 and without END, or `START-` for the rest.
struct ByteRange: Equatable {
    /// The message for a text that is no range.
    static let problem = "--range takes START-END in bytes, such as 0-65536, or START- to the end"

    let start: UInt64
    let end: UInt64

    /// Reads a range; nil if the text is none, or the range is empty.
    init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let start = UInt64(parts[0]) else { return nil }
        let end = parts[1].isEmpty ? UInt64.max : UInt64(parts[1])
        guard let end, start < end else { return nil }
        self.start = start
        self.end = end
    }
}
