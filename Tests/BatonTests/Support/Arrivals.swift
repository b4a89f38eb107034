// SPDX-License-Identifier: Apache-2.0

import BatonMessages
import FoundationEssentials
import SwiftProtobuf

/// A node's requests to an application that continues an activity of the device “laptop”.
extension WireRequest.OneOf_Kind {
    static func announcement(_ handoff: UInt8, _ change: (inout WireWillContinueRequest) -> Void = { _ in }) -> Self {
        .willContinue(
            .with {
                $0.handoffID = Data([handoff])
                $0.type = ContinuingTests.viewing
                $0.device = "laptop"
                $0.title = "List"
                $0.version = 2
                change(&$0)
            })
    }

    static func arrival(_ handoff: UInt8, _ change: (inout WireContinueRequest) -> Void = { _ in }) -> Self {
        .continueActivity(
            .with {
                $0.handoffID = Data([handoff])
                $0.device = "laptop"
                $0.payload.summary.type = ContinuingTests.viewing
                $0.payload.summary.title = "List"
                $0.payload.summary.version = 2
                $0.payload.summary.supportsContinuationStreams = true
                $0.payload.userInfo.entries = ["page": .with { $0.integer = 4 }]
                $0.payload.webPageURL = "https://example.org/4"
                change(&$0)
            })
    }

    static func failure(_ handoff: UInt8, _ code: HandoffError.Code) -> Self {
        .didFail(
            .with {
                $0.handoffID = Data([handoff])
                $0.type = ContinuingTests.viewing
                $0.device = "laptop"
                $0.failure = HandoffError(code, "it failed").failure
            })
    }
}
