import BatonMessages

/// How many documents one device may be sent at once: they share the buffers and threads of the process, and one device
/// must not take those of the others.
actor TransferLimit {
    private let boundPerDevice: Int
    private var running: [Key: Int] = [:]

    private struct Key: Hashable {
        let device: String
        let isPreview: Bool
    }

    /// - Parameter boundPerDevice: see ``NodeLimits/transfersPerDevice``.
    init(perDevice boundPerDevice: Int = NodeLimits().transfersPerDevice) {
        self.boundPerDevice = boundPerDevice
    }

    /// - Parameter isPreview: what an application looks at has places of its own: it is not to wait for documents.
    func begin(for device: PeerName, isPreview: Bool = false) throws(HandoffError) {
        let key = Key(device: device.id, isPreview: isPreview)
        guard running[key, default: 0] < boundPerDevice else {
            throw HandoffError(
                .limitExceeded,
                "\(boundPerDevice) documents are being sent to this device already: try again later")
        }
        running[key, default: 0] += 1
    }

    /// Waits until nothing is being sent, or the time is over.
    func drained(within grace: Duration) async {
        let deadline = ContinuousClock.now + grace
        while !running.isEmpty, ContinuousClock.now < deadline {
            try? await Task.sleep(for: .milliseconds(50))
        }
    }

    func end(for device: PeerName, isPreview: Bool = false) {
        let key = Key(device: device.id, isPreview: isPreview)
        guard let count = running[key] else { return }
        running[key] = count > 1 ? count - 1 : nil
    }
}
