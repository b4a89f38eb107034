// SPDX-License-Identifier: Apache-2.0

import BatonMessages
public import FoundationEssentials

/// Why an activity could not be offered, handed over or continued.
///
/// The codes of Apple's Handoff are those of `CocoaError`; the others are Baton's own.
public struct UserActivityError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure. An unknown code of a newer version of Baton keeps its value.
    public struct Code: RawRepresentable, Sendable, Hashable {
        public let rawValue: Int

        public init(rawValue: Int) {
            self.rawValue = rawValue
        }

        /// The user cancelled (`CocoaError.userCancelled`, 3072): an application can stay silent about it.
        public static let userCancelled = Code(rawValue: 3072)
        /// The activity could not be handed over (`CocoaError.userActivityHandoffFailed`, 4608); also when the
        /// application that offered it has gone.
        public static let handoffFailed = Code(rawValue: 4608)
        /// There is no connection to the node or to the other device
        /// (`CocoaError.userActivityConnectionUnavailable`, 4609).
        public static let connectionUnavailable = Code(rawValue: 4609)
        /// An application did not answer in time (`CocoaError.userActivityRemoteApplicationTimedOut`, 4610).
        public static let remoteApplicationTimedOut = Code(rawValue: 4610)
        /// The user info is over ``UserInfo/maximumSize`` (`CocoaError.userActivityHandoffUserInfoTooLarge`, 4611).
        public static let handoffUserInfoTooLarge = Code(rawValue: 4611)

        // Baton's own, outside of Cocoa's ranges.

        /// An argument that no activity can have, such as a type with a space in it.
        public static let invalid = Code(rawValue: 46_001)
        /// Streams were asked for on an activity that was not continued here, or that was released.
        public static let notContinued = Code(rawValue: 46_002)
        /// The activity has no continuation streams.
        public static let streamsUnsupported = Code(rawValue: 46_003)
        /// The continuing application cannot read this version of the activity.
        public static let versionUnreadable = Code(rawValue: 46_004)
        /// The user's policy does not let the application use the file.
        public static let accessRefused = Code(rawValue: 46_005)
        /// Another device has the activity, and only one may.
        public static let taken = Code(rawValue: 46_006)
        /// The continuing application declined the activity, or did not handle it.
        public static let notHandled = Code(rawValue: 46_007)
        /// The user switched Handoff off.
        public static let handoffOff = Code(rawValue: 46_008)
        /// Two tasks read, or write, one stream at the same time.
        public static let streamInUse = Code(rawValue: 46_009)
        /// The program on the other side of a stream failed: what came before may be cut short.
        public static let streamFailed = Code(rawValue: 46_010)
    }

    public let code: Code
    /// One sentence for people, without a full stop at the end.
    public let message: String
    /// The name of the device that the failure speaks of; `nil` where it speaks of none.
    public let device: String?

    public init(_ code: Code, _ message: String, device: String? = nil) {
        self.code = code
        self.message = message
        self.device = device
    }

    public var description: String { message }

    /// The same as Foundation knows it. Codes of Baton's own are `userActivityHandoffFailed` there.
    public var cocoaError: CocoaError {
        let code = (3072..<5120).contains(code.rawValue) ? code : .handoffFailed
        return CocoaError(CocoaError.Code(rawValue: code.rawValue), userInfo: ["NSLocalizedDescription": message])
    }
}

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
