// SPDX-License-Identifier: Apache-2.0

/// The times that others wait for an application and its library. The defaults are those of the specification; tests
/// make them shorter.
package struct ApplicationDeadlines: Sendable {
    /// To save the state, and to answer any other call of an activity's delegate, before the next begins.
    package var save = Duration.seconds(5)
    /// For the delegate's running call, when a device continues the activity, before the delegate is asked for the
    /// state.
    package var ownCall = Duration.milliseconds(250)
    /// For the node to release a withdrawn activity, before it is offered again anyway.
    package var letGo = Duration.seconds(5)
    /// To answer *will continue*.
    package var willContinue = Duration.seconds(5)
    /// To continue an activity that has come.
    package var continuing = Duration.seconds(20)
    /// For how long changes of an activity are collected before they go out as one.
    package var coalescing = Duration.milliseconds(50)
    /// How long after an activity has expired it is withdrawn; the node, which knows the date, may have done so before.
    package var afterExpiry = Duration.zero
    /// The first wait before another look for a missing node; it doubles up to ``longestRetry``.
    package var shortestRetry = Duration.milliseconds(250)
    package var longestRetry = Duration.seconds(5)

    package init() {}
}
