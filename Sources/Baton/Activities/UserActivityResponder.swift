// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// An object whose state is part of an activity, such as a window or an editor. Several may share one activity.
public protocol UserActivityResponder: AnyObject, Sendable {
    /// Add this object's state to the activity, by ``UserActivity/addUserInfoEntries(from:)``.
    ///
    /// Called before a save: the user info is empty when the first responder is asked, and each adds to what those
    /// before it have put there, in the order in which they were attached. Once its task is cancelled another save may
    /// have begun: add nothing any more.
    func updateUserActivityState(_ activity: UserActivity) async
}

extension UserActivity {
    /// Makes an object one of those that share this activity.
    ///
    /// The activity does not keep the responder; the responder keeps the link, and with it the activity.
    ///
    /// - Returns: what ties the two together until it is let go. An activity whose last responder has gone is
    ///   invalidated.
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

    /// One of the objects that share an activity.
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

    /// Takes the responder off the activity before the link is let go. Once; again does nothing.
    public func detach() {
        activity.detach(self)
    }
}
