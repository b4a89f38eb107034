/// How long a handoff on the continuing device waits for others.
package struct HandoffDeadlines: Sendable {
    /// For the user, to choose one of several applications for a web page.
    package var choice = Duration.seconds(120)
    /// For the origin, to answer anything but the question for the payload.
    package var answer = Duration.seconds(10)
}
