import BatonDiscovery

extension ResponderState {
    /// What the DNS-SD responder does, for `baton status`.
    var inWords: String {
        switch self {
        case .idle: "not started"
        case .running: "running"
        case .unavailable(let reason, let retryAfter):
            "unavailable: \(reason.hasSuffix(".") ? String(reason.dropLast()) : reason); trying again in"
                + " \(max(1, retryAfter.components.seconds)) s"
        }
    }
}
