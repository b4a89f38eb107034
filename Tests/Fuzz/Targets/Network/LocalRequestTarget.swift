import SwiftProtobuf

@testable import BatonAccount
@testable import BatonMessages
@testable import BatonNode

/// What an application asks of its node over the local socket: whatever it offers is refused, or can be announced, listed
/// and handed over.
enum LocalRequestTarget: FuzzTarget {
    static let name = "local-request"
    static let maximumLength = 4096

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        guard let kind = try? WireRequest.decode(Array(bytes)) else { return }
        switch kind {
        case .offer(let request):
            guard let activity = try? OfferedActivity(request, document: nil) else { return }
            try check(activity)
        case .accept(let request):
            expect((ActivityID(request.activityID) == nil) == (request.activityID.count != 16), "a misshapen id")
        case .accountState, .adoptState, .activityList, .payload, .documentManifest, .documentRanges,
            .continuationStream, .continued, .release,
            .status, .devices, .activities, .withdraw, .register, .handoffSwitch, .documentRead, .access, .willSave,
            .willContinue, .continueActivity, .didFail:
            break
        }
    }

    private static func check(_ activity: OfferedActivity) throws {
        let response = WireResponse.OneOf_Kind.payload(
            .with {
                $0.payload = activity.payload
                $0.claimID = SampleUserInfo.id
            })
        let answer: [UInt8] = try WireResponse.with { $0.kind = response }.serializedBytes()
        expect(answer.count <= MessageLimits.size, "an offer of \(answer.count) bytes that cannot be handed over")
        _ = try WireResponse(serializedBytes: answer, options: MessageLimits.decoding)
        let advertised = AdvertisedActivity(
            id: activity.id.bytes, type: activity.type, teamTag: [UInt8](repeating: 0, count: 8), version: 0,
            title: activity.title)
        let identity = AdvertisementTarget.Fixture.shared.identity
        _ = try AdvertisementCodec.encode(
            Advertisement(
                device: identity.id, publicKey: identity.publicKey, epoch: 1, sequence: 1,
                gateNonce: [UInt8](repeating: 0, count: 16),
                content: AdvertisementContent(
                    port: 40_000, addresses: [], deviceName: String(repeating: "n", count: 63), current: advertised)))
    }

    static func seeds() throws -> [[UInt8]] {
        let offers: [(inout WireOfferRequest) -> Void] = [
            { $0.type = "org.example.note" },
            {
                $0.type = "org.example.note"
                $0.title = "A\u{1B}[2J title"
                $0.userInfo = SampleUserInfo.message
                $0.webPageURL = "http://example.org:8080/ü?a=b"
                $0.needsSave = true
            }, { $0.webPageURL = "https://[fe80::1%25eth0]/" }, { $0.webPageURL = "javascript:alert(1)" },
            {
                $0.type = "a b"
                $0.exclusive = true
            }, { $0.title = String(repeating: "👩‍👩‍👧‍👦", count: 41) },
        ]
        let requests: [WireRequest.OneOf_Kind] =
            offers.map { change in .offer(.with(change)) } + [
                .accept(
                    .with {
                        $0.activityID = SampleUserInfo.id
                        $0.destination = SampleUserInfo.id
                    }), .withdraw(.with { $0.idPrefix = "0" }),
            ]
        return try requests.map { kind in try WireRequest.with { $0.kind = kind }.serializedBytes() }
    }
}
