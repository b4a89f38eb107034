/// What other devices were given of the half-typed item, as far as it tells whether it may leave this one.
///
/// Nobody says which device goes on, or lets go, with which state of it. So the item leaves when all that was given says
/// the same as what is here; where only all since the last end does, it leaves as well, and is back when a device lets go.
struct HandedOverDrafts {
    /// A handoff that has its state is over within this time: 20 s to continue it, and the time for which its claim outlives
    /// a connection that was cut.
    private static let time = Duration.seconds(90)
    /// Different ones that are remembered; of more, the oldest are forgotten.
    private static let bound = 32

    private struct Given {
        let draft: Shop.Draft
        let end = ContinuousClock.now + HandedOverDrafts.time
    }

    /// All that was given and that a device may still go on with.
    private var given: [Given] = []
    /// What was given since a device last went on, or let go.
    private var recent: [Given] = []
    /// What left although a device may have had less of it.
    private var left: [Given] = []

    /// A device gets the draft.
    mutating func give(_ draft: Shop.Draft) {
        given.removeAll { $0.draft.saysTheSame(as: draft) || $0.end < .now }
        given = given.suffix(Self.bound - 1) + [Given(draft: draft)]
        recent.removeAll { $0.draft.saysTheSame(as: draft) }
        recent = recent.suffix(Self.bound - 1) + [Given(draft: draft)]
    }

    /// A device has gone on.
    ///
    /// - Returns: whether the draft leaves this device.
    mutating func end(with draft: Shop.Draft) -> Bool {
        given.removeAll { $0.end < .now }
        recent.removeAll { $0.end < .now }
        defer { recent = [] }
        if !given.isEmpty, given.allSatisfy({ $0.draft.saysTheSame(as: draft) }) { return true }
        guard !recent.isEmpty, recent.allSatisfy({ $0.draft.saysTheSame(as: draft) }) else { return false }
        left = left.suffix(Self.bound - 1) + [Given(draft: draft)]
        return true
    }

    /// A device has let go.
    ///
    /// - Returns: what it may have been alone to have all of.
    mutating func letGo() -> [Shop.Draft] {
        recent = []
        defer { left = [] }
        return left.filter { $0.end > .now }.map(\.draft)
    }
}
