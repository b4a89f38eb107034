// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import Logging

extension UserActivity {
    /// Asks for the state after a moment, so that changes close together are saved once.
    func saveSoon() {
        let deadlines = application.deadlines
        Task { [weak self] in
            try? await Task.sleep(for: deadlines.coalescing)
            guard let self else { return }
            _ = await turns.call(within: deadlines.save) {
                // Changes from now on need another save.
                self.state.withLock { $0.isSaveQueued = false }
                // The activity may have ended meanwhile; then there is nothing to save.
                guard !self.isInvalidated else { return }
                await self.save()
            }
        }
    }

    /// The state for a device that takes the activity over.
    ///
    /// - Throws: ``HandoffError``: `timedOut`, `applicationGone` where the activity has ended, or `userInfoTooLarge`.
    func savedState() async throws(HandoffError) -> WireWillSaveResponse {
        let deadlines = application.deadlines
        let saved: ActivityContent?? = await answer(within: deadlines.ownCall + deadlines.save) {
            await self.nextSave().value
        }
        guard case .some(.some(let saved)) = saved else {
            throw HandoffError(.timedOut, "\(application.description.name) did not save its state in time")
        }
        guard !isInvalidated else { throw .activityEnded }
        let content = saved.handedOver(as: activityType)
        do {
            try content.userInfo.validate()
        } catch {
            throw HandoffError(.userInfoTooLarge, "\(error)")
        }
        let missing = content.missingKeys
        if !missing.isEmpty {
            application.logger.warning(
                "\(activityType) is handed over without what it requires: \(missing.joined(separator: ", "))")
        }
        var state = content.savedState
        state.state = self.state.withLock { $0.handOver(content.userInfo) }
        return state
    }

    /// The save for other devices that has not begun yet. All devices that wait share it.
    private func nextSave() -> Task<ActivityContent?, Never> {
        state.withLock { state in
            if let next = state.nextSave { return next }
            let next = Task {
                let deadlines = application.deadlines
                return await turns.callForDevices(within: deadlines.save, endingOthersAfter: deadlines.ownCall) {
                    // A device that asks from now on may need newer state.
                    self.state.withLock { $0.nextSave = nil }
                    await self.save()
                    // Returned within the turn: with responders, the next turn begins with empty user info.
                    return self.content
                }
            }
            state.nextSave = next
            return next
        }
    }

    /// Clears ``needsSave``, and asks for the state in this order: the responders, which begin with empty user info;
    /// the delegate; with responders, the application's delegate.
    private func save() async {
        guard !Task.isCancelled else { return }
        let responders = state.withLock { state in
            state.needsSave = false
            return state.responders.compactMap(\.object)
        }
        if !responders.isEmpty { change { $0.userInfo = [:] } }
        for responder in responders {
            guard !Task.isCancelled else { return }
            await responder.updateUserActivityState(self)
        }
        guard !Task.isCancelled else { return }
        await delegate?.userActivityWillSave(self)
        guard !responders.isEmpty, !Task.isCancelled else { return }
        await application.delegate?.application(application, didUpdate: self)
    }
}

extension HandoffError {
    static let activityEnded = HandoffError(.applicationGone, "the application has ended this activity")
}
