// SPDX-License-Identifier: Apache-2.0

package import BatonMessages
import BatonProtocol
import BatonTransport
import SwiftProtobuf

/// An activity that this application offers through the node. Letting it go withdraws the activity.
package struct NodeOffer: Sendable {
    /// 16 bytes.
    package let id: [UInt8]
    /// The title as it is announced.
    package let title: String
    private let stream: BatonTransport.Stream

    init(id: [UInt8], title: String, stream: BatonTransport.Stream) {
        self.id = id
        self.title = title
        self.stream = stream
    }

    /// The events of the offer, until it is withdrawn. Iterate it once.
    package var events: RecordSequence<WireOfferEvent> { stream.records(of: WireOfferEvent.self) }

    /// Replaces the offered content.
    ///
    /// - Parameter becomesCurrent: whether the activity becomes the device's newest.
    package func update(_ offer: WireOfferRequest, becomesCurrent: Bool) async throws(HandoffError) {
        try await stream.send(
            record: WireOfferUpdate.with {
                $0.offer = offer
                $0.becomesCurrent = becomesCurrent
            })
    }

    /// Withdraws the activity: ends this side of the stream; the node ends its own when it is done.
    package func withdraw() async {
        await stream.finish()
    }
}

/// An activity that this application takes over.
package struct NodeHandoff: Sendable {
    /// Names the handoff on the connection to the node.
    package let id: [UInt8]
    /// The application that gets the activity; `nil`: the program that asked continues it.
    package let application: WireInstalledApplication?
    /// Several applications may continue it, and the user is to choose: nothing was begun.
    package let choices: [WireInstalledApplication]
    private let stream: BatonTransport.Stream

    init(_ response: WireAcceptResponse, stream: BatonTransport.Stream) {
        id = [UInt8](response.handoffID)
        application = response.hasApplication ? response.application : nil
        choices = response.choices
        self.stream = stream
    }

    /// The events of the handoff, until it is over. Iterate it once.
    package var events: RecordSequence<WireAcceptEvent> { stream.records(of: WireAcceptEvent.self) }

    package func choose(_ application: WireInstalledApplication) async throws(HandoffError) {
        try await stream.send(record: WireAcceptAnswer.with { $0.application = application.identifier })
    }

    /// Ends this side of the handoff. The claim is released when the streams are done as well.
    package func finish() async {
        await stream.finish()
    }

    /// Cancels the handoff. The node keeps or removes the fetched part of a document, as it does after any end.
    package func cancel() async {
        await stream.reset(.cancelled)
    }
}
