// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// An object whose state is part of an activity, such as a window or an editor. Several may share one activity.
public protocol UserActivityResponder: AnyObject, Sendable {
    /// Adds this object's state to the activity, by ``UserActivity/addUserInfoEntries(from:)``.
    ///
    /// Called before a save. The user info is empty when the first responder is called; the others add to it in the
    /// order in which they were attached. After the task is cancelled another save may have begun: add nothing then.
    func updateUserActivityState(_ activity: UserActivity) async
}

extension UserActivity {
    /// Makes an object one of those that share this activity.
    ///
    /// The activity does not retain the responder. The responder retains the link, and the link retains the activity.
    ///
    /// - Returns: the link. Releasing it detaches the responder. An activity without a responder left is invalidated.
    public func attach(_ responder: some UserActivityResponder) -> ResponderLink {
        let link = ResponderLink(activity: self)
        let identity = ObjectIdentifier(link)
        state.withLock { $0.responders.append(Responder(link: identity, object: responder)) }
        return link
    }

    func detach(_ link: ResponderLink) {
        let identity = ObjectIdentifier(link)
        let wasLast = state.withLock { state in
            guard let index = state.responders.firstIndex(where: { $0.link == identity }) else { return false }
            state.responders.remove(at: index)
            return state.responders.isEmpty
        }
        if wasLast { invalidate() }
    }

    struct Responder: Sendable {
        let link: ObjectIdentifier
        weak var object: (any UserActivityResponder)?
    }
}

/// Ties a responder to its activity for as long as it lives. To be kept by the responder.
public final class ResponderLink: Sendable {
    /// The activity, which the link keeps.
    public let activity: UserActivity

    init(activity: UserActivity) {
        self.activity = activity
    }

    deinit { detach() }

    /// Detaches the responder before the link is released. A second call does nothing.
    public func detach() {
        activity.detach(self)
    }
}
