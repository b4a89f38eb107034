// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import FoundationEssentials
import Logging

extension UserActivity {
    /// The offer of the activity as it is now; `nil` where it is not to be offered.
    ///
    /// Says so once where the user info is large, or too large, and where a web page has no address.
    func offer() -> WireOfferRequest? {
        let (whole, isInvalidated) = state.withLock { ($0.content, $0.isInvalidated) }
        guard !isInvalidated, whole.isEligibleForHandoff else { return nil }
        if let expires = whole.expirationDate, expires <= Date() { return nil }
        let content = whole.handedOver(as: activityType)
        guard activityType != Self.browsingWebType || content.webpageURL != nil else {
            refuse(UserActivityError(.invalid, "a web page needs its address: set webpageURL"))
            return nil
        }
        do {
            try content.userInfo.validate()
        } catch {
            let isTooLarge = content.userInfo.encodedSize > UserInfo.maximumSize
            refuse(UserActivityError(isTooLarge ? .handoffUserInfoTooLarge : .invalid, "\(error)"))
            return nil
        }
        let size = content.userInfo.encodedSize
        let isLarge = state.withLock { state in
            state.isRefused = false
            guard size > UserInfo.recommendedSize, !state.hasWarnedOfSize else { return false }
            state.hasWarnedOfSize = true
            return true
        }
        if isLarge {
            let advice = "put more into a document or a continuation stream"
            application.logger.warning(
                "\(activityType) has \(size) bytes of user info, over \(UserInfo.recommendedSize): \(advice)")
        }
        return content.offer(id: id, type: activityType, by: application.description)
    }

    /// Tells once why the activity is not offered.
    private func refuse(_ error: UserActivityError) {
        let isNews = state.withLock { state in
            defer { state.isRefused = true }
            return !state.isRefused
        }
        guard isNews else { return }
        application.logger.error("\(activityType) is not offered: \(error)")
        tellFailure(error)
    }

    /// Records an event of the activity, and queues it for the delegate.
    func receive(_ event: WireOfferEvent) {
        switch event.kind {
        case .continued(let device):
            let given = state.withLock { $0.handedOver[device.state] }
            let device = ContinuingDevice(
                name: device.device, identifier: device.deviceID, userInfo: given ?? UserInfo())
            tell { await $0.userActivityWasContinued(self, by: device) }
        case .failed(let failure):
            // A node that stops is looked for again; the activity has not failed.
            guard failure.code != .nodeStopping else { return }
            tellFailure(UserActivityError(HandoffError(failure)))
        case .taken, .progress, .interrupted, .withdrawn, nil:
            return
        }
    }

    func tellFailure(_ error: UserActivityError) {
        tell { await $0.userActivity(self, didFail: error) }
    }

    /// Tells the delegate of an event, in a turn of its own. A slow delegate delays only its later events.
    private func tell(_ call: @escaping @Sendable (any UserActivityDelegate) async -> Void) {
        turns.tell(within: application.deadlines.save) {
            if let delegate = self.delegate { await call(delegate) }
        }
    }
}
