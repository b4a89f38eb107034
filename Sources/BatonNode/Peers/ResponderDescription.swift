// SPDX-License-Identifier: Apache-2.0

import BatonDiscovery

extension ResponderState {
    /// The state of the DNS-SD responder, for `baton status`.
    var inWords: String {
        switch self {
        case .idle: "not started"
        case .running: "running"
        case .unavailable(let reason, let retryAfter):
            "unavailable: \(reason.hasSuffix(".") ? String(reason.dropLast()) : reason); trying again in"
                + " \(max(1, retryAfter.components.seconds)) s"
        }
    }

    /// Whether nothing can be announced for now; one that has not been started yet is about to be.
    var isUnavailable: Bool {
        switch self {
        case .idle, .running: false
        case .unavailable: true
        }
    }
}
