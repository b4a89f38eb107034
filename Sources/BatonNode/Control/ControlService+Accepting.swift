// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonTransport
import FoundationEssentials
import Logging
import SwiftProtobuf
import SystemPackage

extension ControlService {
    func accept(
        _ request: WireAcceptRequest, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        guard let id = ActivityID(request.activityID) else {
            throw HandoffError(.invalidRequest, "an activity's id has \(ActivityID.size) bytes")
        }
        var destination: DestinationFolder?
        if !request.destination.isEmpty {
            let path = try FilePath(absolute: request.destination, "the destination")
            destination = try await documents.openDestination(path)
        }
        try handoffSwitch.current.requireOn()
        let found = try await activities.find(
            id, on: request.deviceID,
            namesDocument: handoffs.hasDetached(from: request.deviceID, into: destination))
        let (summary, origin) = (found.activity, found.origin)
        try Self.require(summary, of: origin, asShownIn: request)
        var plan = Handoff.Plan(
            activity: summary, origin: origin, candidates: found.candidates, destination: destination,
            keepsClaim: request.streams,
            printsOnly: request.look || (!request.toApplication && !request.streams && destination == nil),
            copies: OlderCopies(try Self.copies(in: request)),
            naming: DocumentNaming(label: try Self.label(in: request), renames: request.renames))
        let wanted = request.application
        let isPage = summary.type == ActivityType.browsingWeb
        // Whether one that claims hosts may open a page says the page's host, also where the user has named it.
        if request.toApplication, isPage, await applications.claimsHosts(wanted) {
            plan.recipient = .applicationOfPage(wanted: wanted, browsers: [])
        } else if request.toApplication, isPage, wanted.isEmpty {
            let browsers = try await applications.choose(for: summary, of: origin.name, wanted: wanted)
            plan.recipient = .applicationOfPage(wanted: wanted, browsers: browsers)
        } else if request.toApplication {
            let candidates = try await applications.choose(for: summary, of: origin.name, wanted: wanted)
            guard candidates.count <= 1 else {
                try await stream.respond(.accept(.with { $0.choices = candidates.map(\.message) }))
                return await stream.finish()
            }
            if let candidate = candidates.first {
                plan.recipient = .application(candidate)
                plan.keepsClaim = false
            }
        }
        let handoff = Handoff(
            plan, connections: connections, documents: documents, applications: applications, files: files,
            deadlines: deadlines)
        if let continued = await handoffs.endDetached(like: plan) {
            try await stream.respond(.accept(.with { $0.handoffID = Data(handoff.id.bytes) }))
            try await stream.send(record: WireAcceptEvent.with { $0.continued = continued })
            return await stream.finish()
        }
        try handoffs.insert(handoff)
        await run(handoff, for: stream)
    }

    /// Refuses an activity that the user was shown as something else, or a document with another title. A web page in
    /// the place of a document would be opened.
    nonisolated static func require(
        _ activity: WireActivitySummary, of origin: PeerName, asShownIn request: WireAcceptRequest
    ) throws(HandoffError) {
        guard request.hasShownTitle else { return }
        let isCalledSo = activity.kind != .document || request.shownTitle == activity.title
        guard request.shownKind == activity.kind, isCalledSo else {
            let what =
                switch activity.kind {
                case .document: "the document “\(activity.title)”"
                case .web: "a web page"
                case .application, .UNRECOGNIZED: "an application's activity"
                }
            throw HandoffError(
                .noSuchActivity, "\(origin.name) offers this as \(what) now: look at it again, and accept that",
                device: origin.name)
        }
    }

    /// The name that the document gets here; nil for its origin's name.
    private static func label(in request: WireAcceptRequest) throws(HandoffError) -> DocumentLabel? {
        guard !request.name.isEmpty else { return nil }
        do {
            return try DocumentLabel(request.name)
        } catch {
            throw HandoffError(.invalidRequest, "the name for the document has to be one name of a file")
        }
    }

    /// The older copies that are named, at most ``OlderCopy/limit``.
    nonisolated static func copies(in request: WireAcceptRequest) throws(HandoffError) -> [FilePath] {
        guard request.against.count <= OlderCopy.limit else {
            throw HandoffError(.invalidRequest, "at most \(OlderCopy.limit) older copies can be named")
        }
        return try request.against.map { (copy) throws(HandoffError) in
            try FilePath(absolute: copy, "the path of an older copy")
        }
    }

    /// Runs a handoff and tells the application of it.
    ///
    /// An abort by the program that asked cancels. The end of its connection detaches: a document is still fetched, and
    /// an application still gets its activity. Everything else ends.
    private func run(_ handoff: Handoff, for stream: BatonTransport.Stream) async {
        do {
            try await stream.respond(
                .accept(
                    .with {
                        $0.handoffID = Data(handoff.id.bytes)
                        if case .application(let candidate) = handoff.plan.recipient {
                            $0.application = candidate.message
                        }
                    }))
        } catch {
            return handoffs.remove(handoff)
        }
        handoffs.begin(handoff)
        async let listening: Void = listen(to: stream, for: handoff)
        await tell(of: handoff, on: stream)
        // An application may keep what it continues for long after whoever asked has gone.
        if handoff.plan.keepsClaim { await listening }
    }

    /// Takes in what whoever asked says, until they have said all.
    private func listen(to stream: BatonTransport.Stream, for handoff: Handoff) async {
        defer { handoff.endChoosing() }
        do throws(HandoffError) {
            for try await answer in stream.records(of: WireAcceptAnswer.self) {
                handoff.choose(answer.application)
            }
            if handoff.plan.keepsClaim { handoffs.cancel(handoff) }
        } catch {
            // An application may have the activity, and nobody needs to ask any more.
            if Task.isCancelled, !handoff.plan.keepsClaim { return }
            if error.code == .connectionLost, handoff.plan.outlivesAsker {
                handoffs.setDetached(handoff)
            } else {
                handoffs.cancel(handoff)
            }
        }
    }

    /// Tells whoever asked, and the log, of a handoff to its end.
    private func tell(of handoff: Handoff, on stream: BatonTransport.Stream) async {
        var isHeard = true
        for await event in handoff.events where isHeard {
            do {
                try await stream.send(record: event)
            } catch {
                isHeard = false
            }
            let what = "“\(handoff.plan.activity.title)” of \(handoff.plan.origin.name)"
            switch event.kind {
            case .continued: applications.logger.notice("\(what) was taken over here")
            case .failed(let failure):
                applications.logger.notice("\(what) was not taken over here: \(failure.message)")
                guard HandoffError(failure).code == .noSuchActivity else { continue }
                activities.noteGone(handoff.plan.activity, of: handoff.plan.origin)
            case .willContinue, .payload, .progress, .interrupted, .choose, nil: break
            }
        }
        await stream.finish()
    }
}
