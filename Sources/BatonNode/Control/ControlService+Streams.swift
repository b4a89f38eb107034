// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonMessages
import BatonProtocol
import BatonTransport

/// The continuation streams that an application opens to the origin of what it continues.
extension ControlService {
    func continuationStream(
        _ request: WireContinuationStreamRequest, from application: Connection, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        guard let id = HandoffID(request.claimID), let handoff = handoffs[id] else {
            throw HandoffError(.noSuchClaim, "the activity has not been continued by this application")
        }
        let number = try handoffs.enterStream(of: application)
        defer { handoffs.leaveStream(number) }
        let toOrigin = try await handoff.openContinuationStream()
        do {
            try await stream.respond(.continuationStream(.init()))
        } catch {
            await toOrigin.reset(.cancelled)
            await toOrigin.untilClosed()
            throw error
        }
        await splice(stream, toOrigin, within: streams)
        // Where it was aborted, the place is taken until the other device knows.
        await toOrigin.untilClosed()
    }
}
