// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import FoundationEssentials
import Logging

/// The exchange with the node about an offered activity.
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
            report(.refused, UserActivityError(.invalid, "a web page needs its address: set webpageURL"))
            return nil
        }
        do {
            try content.userInfo.validate()
        } catch {
            let isTooLarge = content.userInfo.encodedSize > UserInfo.maximumSize
            report(.refused, UserActivityError(isTooLarge ? .handoffUserInfoTooLarge : .invalid, "\(error)"))
            return nil
        }
        report(.size(content.userInfo.encodedSize), nil)
        return content.offer(id: id, type: activityType, by: application.description)
    }

    private func report(_ size: ReportedSize.Finding, _ error: UserActivityError?) {
        guard state.withLock({ $0.reported.isNews(size) }) else { return }
        if let error {
            application.logger.error("\(activityType) is not offered: \(error)")
            tellFailure(error)
        } else if case .size(let bytes) = size {
            let advice = "put more into a document or a continuation stream"
            application.logger.warning(
                "\(activityType) has \(bytes) bytes of user info, over \(UserInfo.recommendedSize): \(advice)")
        }
    }

    /// Records an event of the activity, and queues it for the delegate.
    func receive(_ event: WireOfferEvent) {
        switch event.kind {
        case .taken(let device):
            state.withLock { $0.takeovers[device.deviceID] = ($0.takeovers[device.deviceID] ?? 0) + 1 }
        case .continued(let device):
            guard state.withLock({ $0.isNews(ofDevice: device.deviceID) }) else { return }
            let given = state.withLock { $0.handedOver[device.state] }
            let device = ContinuingDevice(
                name: device.device, identifier: device.deviceID, userInfo: given ?? UserInfo())
            tell { await $0.userActivityWasContinued(self, by: device) }
        case .failed(let failure):
            // A node that stops is looked for again; the activity has not failed.
            guard failure.code != .nodeStopping else { return }
            tellFailure(UserActivityError(HandoffError(failure)))
        case .progress, .interrupted, .withdrawn, nil:
            return
        }
    }

    func tellFailure(_ error: UserActivityError) {
        tell { await $0.userActivity(self, didFail: error) }
    }

    /// Tells the delegate of an event, in a turn of its own. A slow delegate delays only its later events.
    private func tell(_ call: @escaping @Sendable (any UserActivityDelegate) async -> Void) {
        news.tell {
            _ = await self.turns.call(within: self.application.deadlines.save) {
                if let delegate = self.delegate { await call(delegate) }
            }
        }
    }
}

/// The reported problems with the size of an activity's user info, so that each is reported once.
struct ReportedSize: Sendable {
    enum Finding {
        case size(Int)
        case refused
    }

    /// Doublings of the recommended size that were warned of.
    private var warned = 0
    private var isRefused = false

    /// Whether a problem is new: user info in a class of sizes (3 to 6 KB, 6 to 12, and so on) that was not reported,
    /// user info that became too large or too deep, or a web page that has no address.
    mutating func isNews(_ finding: Finding) -> Bool {
        switch finding {
        case .refused:
            defer { isRefused = true }
            return !isRefused
        case .size(let bytes):
            isRefused = false
            var sizeClass = 0
            while bytes > UserInfo.recommendedSize << sizeClass { sizeClass += 1 }
            defer { warned = max(warned, sizeClass) }
            return sizeClass > warned
        }
    }
}
