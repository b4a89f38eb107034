// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import BatonTransport

extension IncomingStream {
    /// Bytes of a request that is decoded at once: 4 KiB, and most have 50. A longer one may consist of tens of
    /// thousands of fields, and leaves the loop for that.
    private static let shortRequest = 4 << 10

    /// The request.
    ///
    /// - Throws: ``HandoffError`` with `invalidRequest`.
    func decoded() async throws(HandoffError) -> WireRequest.OneOf_Kind {
        guard request.count > Self.shortRequest else { return try WireRequest.decode(request) }
        return try await offLoop { () throws(HandoffError) in try WireRequest.decode(request) }
    }
}
