import BatonMessages

/// The handoffs that are under way on this device.
actor HandoffTable {
    /// Handoffs at once, those that an application holds on to among them; one more is refused.
    static let bound = 64

    private var entries: [HandoffID: (handoff: Handoff, task: Task<Void, Never>?)] = [:]

    subscript(id: HandoffID) -> Handoff? { entries[id]?.handoff }

    func insert(_ handoff: Handoff) throws(HandoffError) {
        guard entries.count < Self.bound else {
            throw HandoffError(.limitExceeded, "\(Self.bound) activities are being accepted already: try again later")
        }
        entries[handoff.id] = (handoff, nil)
    }

    func setTask(_ task: Task<Void, Never>, of handoff: Handoff) {
        entries[handoff.id]?.task = task
    }

    func remove(_ handoff: Handoff) {
        entries[handoff.id] = nil
    }

    /// Lets what is being written be finished for a while, and cancels the rest.
    func stop(grace: Duration) async {
        let tasks = entries.values.compactMap(\.task)
        guard !tasks.isEmpty else { return }
        for (handoff, _) in entries.values { await handoff.nodeIsStopping() }
        _ = try? await withDeadline(grace, "the handoffs were not over") {
            for task in tasks {
                await withTaskCancellationHandler {
                    await task.value
                } onCancel: {
                    task.cancel()
                }
            }
        }
        for task in tasks {
            task.cancel()
            await task.value
        }
    }
}
