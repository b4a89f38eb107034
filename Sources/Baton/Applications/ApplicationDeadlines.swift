// SPDX-License-Identifier: Apache-2.0

/// How long an application and its library may take for what others wait for. The defaults are those of the
/// specification; tests make them shorter.
package struct ApplicationDeadlines: Sendable {
    /// To save the state, and to answer any other call of an activity's delegate, before the next begins.
    package var save = Duration.seconds(5)
    /// For what an activity's delegate is still at when a device takes the activity over, before it is asked.
    package var ownCall = Duration.milliseconds(250)
    /// For the node to let go of what was withdrawn, before it is offered anew all the same.
    package var letGo = Duration.seconds(5)
    /// To answer *will continue*.
    package var willContinue = Duration.seconds(5)
    /// To continue an activity that has come.
    package var continuing = Duration.seconds(20)
    /// For how long changes of an activity are collected before they go out as one.
    package var coalescing = Duration.milliseconds(50)
    /// How long after an activity has expired it is withdrawn; the node, which knows the date, may have done so before.
    package var afterExpiry = Duration.zero
    /// The first wait before a node that is missing is looked for again; it doubles up to ``longestRetry``.
    package var shortestRetry = Duration.milliseconds(250)
    package var longestRetry = Duration.seconds(5)

    package init() {}
}
