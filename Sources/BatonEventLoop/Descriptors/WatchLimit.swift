// SPDX-License-Identifier: Apache-2.0

import CLinux

/// How many descriptors the kernel watches for this user, in all programs together (`fs.epoll.max_user_watches`).
///
/// libdispatch ends a program that cannot have its first ones, so that it has to be known without an ``EventLoop``.
package enum WatchLimit {
    /// Whether the kernel watches so many further descriptors. True if no descriptor is free to try it with.
    package static func hasRoom(for count: Int) -> Bool {
        let poll = baton_epoll_create()
        guard poll >= 0 else { return true }
        let set = OwnedDescriptor(takingOwnershipOf: poll)
        // Watched until all of them are.
        var watched: [SharedDescriptor] = []
        defer { withExtendedLifetime(watched) {} }
        for _ in 0..<count {
            let event = baton_event_create()
            guard event >= 0 else { return true }
            watched.append(SharedDescriptor(OwnedDescriptor(takingOwnershipOf: event)))
            guard baton_epoll_watch(set.rawValue, event, 0, baton_epoll_each_write, 1) == 0 else { return false }
        }
        return true
    }
}
