// SPDX-License-Identifier: Apache-2.0

import BatonMessages
import SwiftProtobuf

extension NodeSession {
    /// Answers in a task of its own, so that one delegate does not delay another. The protocol bounds the open and
    /// unanswered requests of a peer.
    func take(_ request: NodeRequest, over client: NodeClient) {
        Task {
            switch request {
            case .willSave(let question): await save(question)
            case .continuationStream(let question): await serve(question)
            case .willContinue(let question): await willContinue(question)
            case .continueActivity(let question): await continueActivity(question, over: client)
            case .didFail(let news): await didFail(news)
            }
        }
    }

    private func save(_ question: NodeQuestion<WireWillSaveRequest>) async {
        guard let activity = roster[ActivityIdentifier(bytes: Array(question.request.activityID))] else {
            return await question.fail(.activityEnded)
        }
        do throws(HandoffError) {
            // The node may no longer wait for the answer; then the error has no receiver.
            try await question.answer(.willSave(try await activity.savedState()))
        } catch {
            await question.fail(error)
        }
    }

    private func serve(_ question: NodeQuestion<WireContinuationStreamRequest>) async {
        guard let activity = roster[ActivityIdentifier(bytes: Array(question.request.activityID))] else {
            return await question.fail(.activityEnded)
        }
        await activity.serve(question)
    }

    private func willContinue(_ question: NodeQuestion<WireWillContinueRequest>) async {
        guard let application = roster.application else { return await question.fail(.applicationEnded) }
        let (handoff, type) = (Array(question.request.handoffID), question.request.type)
        // No application declares a web page's type: the node has asked the page's host which application may open it.
        guard type == UserActivity.browsingWebType || description.continues.contains(where: { $0.type == type }) else {
            handoffs.note(handoff, of: type, .over)
            return await question.fail(HandoffError(.notHandled, "\(description.name) does not continue \(type)"))
        }
        handoffs.note(handoff, of: type, .asked)
        let response = await answer(within: deadlines.willContinue) {
            await application.delegate?.application(application, willContinueUserActivityWithType: type)
                ?? .systemShowsProgress
        }
        // The handoff may have failed while the application was asked, which is told now.
        let failure: UserActivityError? = if case .failed(let error)? = handoffs[handoff] { error } else { nil }
        switch response {
        case .applicationShowsProgress, .systemShowsProgress:
            handoffs.note(handoff, of: type, .agreed)
            if let failure {
                await question.fail(HandoffError(.cancelled, "the handoff is over already"))
                return await tellFailure(handoff, type, failure)
            }
            // If the node no longer waits, it says so by *did fail*.
            let isShown = response == .applicationShowsProgress
            try? await question.answer(.willContinue(.with { $0.showsProgress = isShown }))
        case .refused(let reason):
            handoffs.note(handoff, of: type, .over)
            await question.fail(HandoffError(.refused, "\(description.name) declined: \(reason)"))
        case nil:
            await question.fail(
                HandoffError(.timedOut, "\(description.name) did not answer in time that it will continue"))
            handoffs.note(handoff, of: type, .agreed)
            await tellFailure(
                handoff, type,
                failure ?? UserActivityError(.remoteApplicationTimedOut, "the application did not answer in time"))
        }
    }

    private func continueActivity(_ question: NodeQuestion<WireContinueRequest>, over client: NodeClient) async {
        guard let application = roster.application else { return await question.fail(.applicationEnded) }
        let (request, handoffID) = (question.request, Array(question.request.handoffID))
        guard !handoffs.isOver(handoffID) else {
            return await question.fail(HandoffError(.cancelled, "\(description.name) declined this activity before"))
        }
        let type = request.payload.summary.type
        handoffs.note(handoffID, of: type, .continuing)
        let activity: UserActivity
        do throws(UserActivityError) {
            let handoff = ContinuedHandoff(question, over: client)
            let content = try ActivityContent(request.payload, document: handoff.document)
            activity = UserActivity(type, application, content, handoff: handoff)
        } catch {
            await question.fail(HandoffError(.invalidRequest, error.message))
            return await tellFailure(handoffID, type, error)
        }
        let isContinued = await answer(within: deadlines.continuing) {
            let isHandled = await application.delegate?.application(
                application, continue: activity, restorationHandler: RestorationHandler(activity))
            return isHandled == true ? true : await Self.openDocument(of: activity, in: application)
        }
        if isContinued == true {
            // If the node has gone or the user has cancelled, *did fail* says so, or nothing does.
            try? await question.stream.respond(.continueActivity(.init()))
            activity.handoff?.wasAnswered()
            handoffs.note(handoffID, of: type, .over)
        } else {
            let isLate = isContinued == nil
            let message = "\(description.name) did not \(isLate ? "continue \(type) in time" : "handle \(type)")"
            await question.fail(HandoffError(isLate ? .timedOut : .notHandled, message))
            let code = isLate ? UserActivityError.Code.remoteApplicationTimedOut : .notHandled
            await tellFailure(handoffID, type, UserActivityError(code, message, device: request.device))
        }
        // Until here, so that a delegate that does not keep the activity cannot let its claim go before the answer.
        withExtendedLifetime(activity) {}
    }

    /// Has the application open the document of an activity that it did not handle, and restores the object that shows
    /// it.
    private static func openDocument(of activity: UserActivity, in application: Application) async -> Bool {
        guard !Task.isCancelled, let document = try? Document(continuing: activity),
            let opened = await application.delegate?.application(application, open: document)
        else { return false }
        await RestorationHandler(activity)([opened])
        return true
    }

    private func didFail(_ news: NodeQuestion<WireDidFailRequest>) async {
        let (request, failure) = (news.request, HandoffError(news.request.failure))
        let device = failure.device.isEmpty ? request.device : failure.device
        let error = UserActivityError(HandoffError(failure.code, failure.message, device: device))
        // Before the acknowledgement, so that failures keep the order in which the node sends them.
        let isNews = handoffs.fail(Array(request.handoffID), of: request.type, with: error)
        try? await news.answer(.didFail(.init()))
        if isNews { await tellDelegate(request.type, error) }
    }

    /// The connection has ended: handoffs on their way have failed.
    func tellLost() {
        let error = UserActivityError(
            .connectionUnavailable, "the node on this device was lost while the activity was on its way")
        for type in handoffs.failAll(with: error) {
            Task { await tellDelegate(type, error) }
        }
    }

    private func tellFailure(_ handoff: [UInt8], _ type: String, _ error: UserActivityError) async {
        if handoffs.fail(handoff, of: type, with: error) { await tellDelegate(type, error) }
    }

    private func tellDelegate(_ type: String, _ error: UserActivityError) async {
        guard let application = roster.application else { return }
        await application.delegate?.application(
            application, didFailToContinueUserActivityWithType: type, error: error)
    }
}

extension HandoffError {
    fileprivate static let applicationEnded = HandoffError(.applicationGone, "the application is ending")
}

/// The handoffs that an application was told of. The log makes sure that the application hears nothing of a handoff
/// that it refused, that no handoff fails twice, and that each one that it agreed to ends.
struct HandoffLog {
    /// Handoffs that are remembered; the oldest is forgotten beyond it. Accepting is a user's action.
    static let bound = 64

    enum State {
        /// The application is being asked whether it continues it.
        case asked
        /// It has failed while the application was being asked, which is told so when it has agreed.
        case failed(UserActivityError)
        /// The application agreed to continue it.
        case agreed
        /// The application has the activity, and decides whether it continues it.
        case continuing
        /// The application declined, or the handoff came to its end.
        case over
    }

    private var handoffs = RecentValues<[UInt8], (type: String, state: State)>(bound: bound)

    subscript(id: [UInt8]) -> State? { handoffs[id]?.state }

    func isOver(_ id: [UInt8]) -> Bool {
        if case .over? = self[id] { true } else { false }
    }

    mutating func note(_ id: [UInt8], of type: String, _ state: State) {
        handoffs[id] = (type, state)
    }

    /// Records that a handoff has failed. Returns whether the application is to be told now.
    mutating func fail(_ id: [UInt8], of type: String, with error: UserActivityError) -> Bool {
        switch self[id] {
        case .over?, .failed?: return false
        case .asked?:
            note(id, of: type, .failed(error))
            return false
        case .agreed?, .continuing?, nil:
            note(id, of: type, .over)
            return true
        }
    }

    /// Records the failure of all handoffs whose activity the application does not have yet.
    ///
    /// - Returns: the types of those that the application is to be told of now.
    mutating func failAll(with error: UserActivityError) -> [String] {
        var told: [String] = []
        for (id, (type, state)) in handoffs.entries {
            switch state {
            case .asked: note(id, of: type, .failed(error))
            case .agreed:
                note(id, of: type, .over)
                told.append(type)
            case .failed, .continuing, .over: break
            }
        }
        return told
    }
}
