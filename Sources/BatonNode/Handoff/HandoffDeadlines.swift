// SPDX-License-Identifier: Apache-2.0

/// How long a handoff on the continuing device waits for others.
package struct HandoffDeadlines: Sendable {
    /// For the user, to choose one of several applications for a web page.
    package var choice = Duration.seconds(120)
    /// For the origin, to send the payload. Its application may take 5 s to save, and as long before that for devices
    /// that came earlier.
    package var payload = Duration.seconds(15)
    /// For the origin, to answer anything else.
    package var answer = Duration.seconds(10)
    /// How long a device has no turn after a rule has failed to take something over. So a device that offers and does
    /// not give costs no more than a few lines of the log.
    package var rest = Duration.seconds(10)
    /// How long the folder of a rule may take to open: one on a network drive that is away may take for ever.
    package var opening = Duration.seconds(10)
}
