import BatonMessages

/// How many documents one device may be sent at once: they share the buffers and threads of the process, and one device
/// must not take those of the others.
actor TransferLimit {
    private let boundPerDevice: Int
    private var running: [String: Int] = [:]

    /// - Parameter boundPerDevice: see ``NodeLimits/transfersPerDevice``.
    init(perDevice boundPerDevice: Int = NodeLimits().transfersPerDevice) {
        self.boundPerDevice = boundPerDevice
    }

    func begin(for device: PeerName) throws(HandoffError) {
        guard running[device.id, default: 0] < boundPerDevice else {
            throw HandoffError(
                .limitExceeded,
                "\(boundPerDevice) documents are being sent to this device already: try again later")
        }
        running[device.id, default: 0] += 1
    }

    /// Waits until nothing is being sent, or the time is over.
    func drained(within grace: Duration) async {
        let deadline = ContinuousClock.now + grace
        while !running.isEmpty, ContinuousClock.now < deadline {
            try? await Task.sleep(for: .milliseconds(50))
        }
    }

    func end(for device: PeerName) {
        guard let count = running[device.id] else { return }
        running[device.id] = count > 1 ? count - 1 : nil
    }
}
