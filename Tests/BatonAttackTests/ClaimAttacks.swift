import BatonMessages
import BatonProtocol
import Foundation
import SwiftProtobuf
import Testing

@testable import BatonNode

/// What a device of the account can ask of another whose user has not given it anything.
///
/// LocalSend served files to whoever knew the address of a session (CVE-2025-27142 wrote them); Quick Share took a file
/// without the user's yes (CVE-2024-38271); KDE Connect let a paired device mount the whole file system.
@Suite("Attacks on claims", .timeLimit(.minutes(1)))
struct ClaimAttacks {
    private let thief = PeerName(id: "thief", name: "thief")
    private let desktop = PeerName(id: "desktop", name: "desktop")

    enum Request: String, CaseIterable {
        case manifest, ranges, stream, continued

        func kind(_ claim: [UInt8]) -> WireRequest.OneOf_Kind {
            let claim = Data(claim)
            return switch self {
            case .manifest: .documentManifest(.with { $0.claimID = claim })
            case .ranges:
                .documentRanges(
                    .with {
                        $0.claimID = claim
                        $0.ranges = [.init()]
                    })
            case .stream: .continuationStream(.with { $0.claimID = claim })
            case .continued: .continued(.with { $0.claimID = claim })
            }
        }
    }

    /// Sends the request in the name of `device`, and says whether it was granted.
    private func outcome(
        _ request: Request, _ claim: [UInt8], from device: PeerName, at origin: Origin
    ) async throws -> Outcome {
        let application = Task { try await origin.answerContinuationStream() }
        defer { application.cancel() }
        let (answer, data) = try await origin.answer(to: request.kind(claim), from: device)
        switch answer {
        case .documentManifest, .continuationStream, .continued: return .succeeded
        case .documentRanges: return Outcome(succeeds: data.holds(Array(Origin.secret.utf8)))
        case .failure(let failure):
            #expect(failure.code == .noSuchClaim)
            return .refused
        case _: return .refused
        }
    }

    @Test("A document, a stream or *continued* without a claim", arguments: Request.allCases)
    func withoutClaim(_ request: Request) async throws {
        try await attack("\(request) without a claim") { defence in
            let origin = try await Origin(checks: defence.isOn ? .all : .all.subtracting(.given))
            return try await outcome(request, ClaimID().bytes, from: thief, at: origin)
        }
    }

    @Test("With the claim of another device", arguments: Request.allCases)
    func stolenClaim(_ request: Request) async throws {
        try await attack("\(request) with the claim of another device") { defence in
            let origin = try await Origin(checks: defence.isOn ? .all : .all.subtracting(.holder))
            let claim = try await origin.grantClaim(to: desktop)
            return try await outcome(request, claim.bytes, from: thief, at: origin)
        }
    }

    @Test("With no claim, half a claim and too long a one: refused, and nothing else happens")
    func malformedClaim() async throws {
        let origin = try await Origin()
        for request in Request.allCases {
            for count in [0, 8, 17, 4096] {
                let (answer, data) = try await origin.answer(
                    to: request.kind([UInt8](repeating: 0, count: count)), from: thief)
                guard case .failure(let failure) = answer else {
                    Issue.record("\(request) with \(count) bytes was granted")
                    continue
                }
                #expect(failure.code == .invalidRequest && data.isEmpty)
            }
        }
    }

    /// A claim that its holder let go, presented again.
    @Test("A claim that was let go", arguments: Request.allCases)
    func releasedClaim(_ request: Request) async throws {
        try await attack("\(request) with a claim that was let go") { defence in
            let origin = try await Origin(checks: defence.isOn ? .all : .all.subtracting(.release))
            let claim = try await origin.grantClaim(to: thief)
            await origin.offers.release(claim, by: thief)
            return try await outcome(request, claim.bytes, from: thief, at: origin)
        }
    }

    /// KDE Connect took `deviceId` from the packet (CVE-2025-32900); Warpinator's protocol still states a name.
    @Test("An identity that is stated in a frame")
    func statedIdentity() async throws {
        try await attack("a continuation stream in the name of another device") { defence in
            let origin = try await Origin(checks: defence.isOn ? .all : .all.subtracting(.name))
            let claim = try await origin.grantClaim(to: thief)
            async let told = origin.answerContinuationStream()
            let request = WireRequest.OneOf_Kind.continuationStream(
                .with {
                    $0.claimID = Data(claim.bytes)
                    $0.device = desktop.name
                })
            _ = try await origin.answer(to: request, from: thief)
            return Outcome(succeeds: try await told == desktop.name)
        }
    }

    /// Requests that are for the user's own programs, sent by a device: accepting, offering and withdrawing in the user's
    /// name, and reading what other devices offer.
    @Test("Requests of the local socket, sent by another device")
    func localRequests() async throws {
        let origin = try await Origin()
        let requests: [WireRequest.OneOf_Kind] = [
            .status(.init()), .devices(.init()), .activities(.init()), .offer(.init()), .withdraw(.init()),
            .accept(.init()), .willSave(.init()),
        ]
        for request in requests {
            let (answer, _) = try await origin.answer(to: request, from: thief)
            guard case .failure(let failure) = answer else {
                Issue.record("\(request) was granted")
                continue
            }
            #expect(failure.code == .unsupported)
        }
        #expect(await origin.offers.count == 1)
    }
}
