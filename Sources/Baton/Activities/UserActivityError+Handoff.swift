// SPDX-License-Identifier: Apache-2.0

import BatonMessages

/// Failures from the wire, as an application sees them.
extension UserActivityError {
    init(_ error: HandoffError) {
        let code: Code =
            switch error.code {
            case .userInfoTooLarge: .handoffUserInfoTooLarge
            case .timedOut, .applicationNotStarted: .remoteApplicationTimedOut
            case .connectionLost, .peerUnreachable, .nodeStopping: .connectionUnavailable
            case .cancelled: .userCancelled
            case .streamsUnsupported: .streamsUnsupported
            case .versionUnreadable: .versionUnreadable
            case .accessRefused: .accessRefused
            case .claimHeld: .taken
            case .noSuchClaim: .notContinued
            case .handoffOff: .handoffOff
            case .notHandled: .notHandled
            case .invalidRequest: .invalid
            case .applicationGone, .unspecified, .internal, .unsupported, .noSuchActivity, .ambiguousActivity,
                .limitExceeded, .refused, .documentUnreadable, .documentChanged, .destinationExists,
                .destinationUnwritable, .destinationFull, .corrupted, .UNRECOGNIZED:
                .handoffFailed
            }
        self.init(code, error.message, device: error.device.isEmpty ? nil : error.device)
    }
}
