import BatonMessages

/// How many documents one device may be sent at once: they share the buffers and threads of the process, and one device
/// must not take those of the others.
actor TransferLimit {
    /// What is done for a device; each kind has places of its own.
    enum Work: Hashable {
        case document
        /// What an application looks at: it is not to wait for documents. One at a time, and the others in line.
        case preview
        /// Looking at all that is in a document, and telling it: a thread, and a tree in memory.
        case description
    }

    private let boundPerDevice: Int
    private var running: [Key: Int] = [:]
    /// Who waits for a place. No more than ``boundPerDevice`` of each device, since only previews wait.
    private var line: [Key: [CheckedContinuation<Void, Never>]] = [:]

    private struct Key: Hashable {
        let device: String
        let work: Work
    }

    /// - Parameter boundPerDevice: see ``NodeLimits/transfersPerDevice``.
    init(perDevice boundPerDevice: Int = NodeLimits().transfersPerDevice) {
        self.boundPerDevice = boundPerDevice
    }

    /// Takes a place, which ``end(for:_:)`` gives back. For a preview it waits in line.
    ///
    /// - Throws: `limitExceeded` where the device has all of its places, and as many in line.
    func begin(for device: PeerName, _ work: Work = .document) async throws(HandoffError) {
        let key = Key(device: device.id, work: work)
        if running[key, default: 0] < places(for: work) {
            running[key, default: 0] += 1
            return
        }
        guard work == .preview, line[key, default: []].count < boundPerDevice else {
            throw HandoffError(
                .limitExceeded,
                "\(boundPerDevice) documents are being sent to this device already: try again later")
        }
        // Who ends gives the place on.
        await withCheckedContinuation { line[key, default: []].append($0) }
    }

    /// How many wait for a place.
    var lineCount: Int { line.values.reduce(0) { $0 + $1.count } }

    private func places(for work: Work) -> Int {
        switch work {
        case .document, .description: boundPerDevice
        case .preview: 1
        }
    }

    /// Waits until nothing is being sent, or the time is over.
    func drained(within grace: Duration) async {
        let deadline = ContinuousClock.now + grace
        while !running.isEmpty, ContinuousClock.now < deadline {
            try? await Task.sleep(for: .milliseconds(50))
        }
    }

    func end(for device: PeerName, _ work: Work = .document) {
        let key = Key(device: device.id, work: work)
        guard let count = running[key] else { return }
        if let next = line[key]?.first {
            line[key]?.removeFirst()
            if line[key]?.isEmpty == true { line[key] = nil }
            return next.resume()
        }
        running[key] = count > 1 ? count - 1 : nil
    }
}
