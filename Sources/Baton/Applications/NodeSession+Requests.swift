// SPDX-License-Identifier: Apache-2.0

import BatonMessages

/// The node's requests to an application.
extension NodeSession {
    /// Answers in a task of its own, so that one delegate does not delay another. The protocol bounds the open and
    /// unanswered requests of a peer.
    func take(_ request: NodeRequest, over client: NodeClient) {
        Task {
            switch request {
            case .willSave(let question): await save(question)
            case .continuationStream(let request): await serve(request)
            case .willContinue(let question): await willContinue(question)
            case .continueActivity(let request): await continueActivity(request, over: client)
            case .didFail(let news): await didFail(news)
            }
        }
    }

    private func save(_ question: NodeWillSave) async {
        guard let activity = roster[ActivityIdentifier(bytes: question.activityID)] else {
            return await question.fail(.activityEnded)
        }
        do throws(HandoffError) {
            // The node may no longer wait for the answer; then the error has no receiver.
            try await question.answer(try await activity.savedState())
        } catch {
            await question.fail(error)
        }
    }

    private func serve(_ request: NodeStreamRequest) async {
        guard let activity = roster[ActivityIdentifier(bytes: request.activityID)] else {
            return await request.refuse(.activityEnded)
        }
        await activity.serve(request)
    }

    private func willContinue(_ question: NodeWillContinue) async {
        guard let application = roster.application else { return await question.decline(.applicationEnded) }
        if let error = unreadable(question) {
            handoffs.note(question.handoffID, of: question.type, .over)
            return await question.decline(error)
        }
        handoffs.note(question.handoffID, of: question.type, .asked)
        let response = await answer(within: deadlines.willContinue) {
            await application.delegate?.application(application, willContinueUserActivityWithType: question.type)
                ?? .systemShowsProgress
        }
        let failure: UserActivityError? =
            if case .failed(let error)? = handoffs[question.handoffID] { error } else { nil }
        switch response {
        case .applicationShowsProgress: await agree(question, showsProgress: true, unless: failure)
        case .systemShowsProgress: await agree(question, showsProgress: false, unless: failure)
        case .refused(let reason):
            handoffs.note(question.handoffID, of: question.type, .over)
            await question.decline(HandoffError(.refused, "\(description.name) declined: \(reason)"))
        case nil:
            await question.decline(
                HandoffError(.timedOut, "\(description.name) did not answer in time that it will continue"))
            handoffs.note(question.handoffID, of: question.type, .agreed)
            await tellFailure(
                question.handoffID, question.type,
                failure ?? UserActivityError(.remoteApplicationTimedOut, "the application did not answer in time"))
        }
    }

    /// - Parameter failure: a failure of the handoff while the application was asked, which it is told now.
    private func agree(
        _ question: NodeWillContinue, showsProgress: Bool, unless failure: UserActivityError?
    ) async {
        handoffs.note(question.handoffID, of: question.type, .agreed)
        if let failure {
            await question.decline(HandoffError(.cancelled, "the handoff is over already"))
            return await tellFailure(question.handoffID, question.type, failure)
        }
        // If the node no longer waits, it says so by *did fail*.
        try? await question.agree(showsProgress: showsProgress)
    }

    /// The reason why this application cannot read the version that is on its way; `nil` if it can.
    private func unreadable(_ question: NodeWillContinue) -> HandoffError? {
        guard let continued = description.continues.first(where: { $0.type == question.type }) else {
            // No application declares the system's own type: the node has asked the page's host which application may
            // open it.
            if question.type == UserActivity.browsingWebType { return nil }
            return HandoffError(.notHandled, "\(description.name) does not continue \(question.type)")
        }
        guard let versions = continued.versions, !continued.reads(question.version) else { return nil }
        let readable =
            versions.count == 1
            ? "version \(versions.lowerBound)" : "versions \(versions.lowerBound) to \(versions.upperBound)"
        let remedy =
            question.version > versions.upperBound ? "update it on this device" : "update it on \(question.device)"
        return HandoffError(
            .versionUnreadable,
            "this device's \(description.name) reads \(readable) of \(question.type); \(question.device) sends version"
                + " \(question.version): \(remedy)",
            device: question.device)
    }

    private func continueActivity(_ request: NodeContinue, over client: NodeClient) async {
        guard let application = roster.application else { return await request.fail(.applicationEnded) }
        guard !handoffs.isOver(request.handoffID) else {
            return await request.fail(HandoffError(.cancelled, "\(description.name) declined this activity before"))
        }
        let type = request.payload.summary.type
        handoffs.note(request.handoffID, of: type, .continuing)
        let activity: UserActivity
        do throws(UserActivityError) {
            let content = try ActivityContent(request.payload, document: request.document)
            let handoff = ContinuedHandoff(request, over: client)
            activity = UserActivity(type, application, content, handoff: handoff)
        } catch {
            await request.fail(HandoffError(.invalidRequest, error.message))
            return await tellFailure(request.handoffID, type, error)
        }
        let isContinued = await answer(within: deadlines.continuing) {
            let isHandled = await application.delegate?.application(
                application, continue: activity, restorationHandler: RestorationHandler(activity))
            return isHandled == true ? true : await Self.openDocument(of: activity, in: application)
        }
        switch isContinued {
        case true?:
            // If the node has gone or the user has cancelled, *did fail* says so, or nothing does.
            try? await request.confirm()
            activity.handoff?.wasAnswered()
            handoffs.note(request.handoffID, of: type, .over)
        case false?:
            let message = "\(description.name) did not handle \(type)"
            await request.fail(HandoffError(.notHandled, message))
            await tellFailure(request.handoffID, type, UserActivityError(.notHandled, message, device: request.device))
        case nil:
            let message = "\(description.name) did not continue \(type) in time"
            await request.fail(HandoffError(.timedOut, message))
            await tellFailure(
                request.handoffID, type,
                UserActivityError(.remoteApplicationTimedOut, message, device: request.device))
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

    private func didFail(_ news: NodeDidFail) async {
        let error = UserActivityError(news.error)
        // Before the acknowledgement, so that failures keep the order in which the node sends them.
        let isNews = handoffs.fail(news.handoffID, of: news.type, with: error)
        await news.acknowledge()
        if isNews { await tellDelegate(news.type, error) }
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
