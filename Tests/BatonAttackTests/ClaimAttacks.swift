// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonEventLoop
import BatonMessages
import BatonProtocol
import Foundation
import SwiftProtobuf
import Testing

@testable import BatonNode

/// Requests of a device of the account to another device whose user has given it nothing.
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
                        $0.ranges = [.with { $0.count = 1 }]
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
            #expect(failure.code == (claim.count == ClaimID.size ? .noSuchClaim : .invalidRequest) && data.isEmpty)
            return .refused
        case _: return .refused
        }
    }

    /// A device lets an origin look at a large folder for each claim that it can hold. The origin keeps the list of the
    /// folder with the claim, at most 31 MiB.
    @Test("Descriptions in a flood")
    func descriptions() async throws {
        try await attack("descriptions of as many claims as fill the memory for all") { defence in
            let bytes = 16 << 10
            let part = SharedPart(ByteBudget(bytes: bytes).part(reserved: bytes, ceiling: bytes))
            let origin = try await Origin(isFolder: true, descriptions: defence.isOn ? part : nil)
            func isDescribed(to device: PeerName) async throws -> Bool {
                let claim = try await origin.offers.claim(origin.activity.id, by: device).claim
                let answer = try await origin.answer(to: Request.manifest.kind(claim.bytes), from: device).answer
                if case .documentManifest = answer { return true }
                guard case .failure(let failure) = answer else { return false }
                #expect(failure.code == .limitExceeded)
                return false
            }
            var count = 0
            for _ in 0..<16 where try await isDescribed(to: thief) { count += 1 }
            // Another device is served all the same.
            #expect(try await isDescribed(to: desktop))
            return Outcome(succeeds: count == 16)
        }
    }

    @Test("A document, a stream or *continued* without a claim", arguments: Request.allCases)
    func withoutClaim(_ request: Request) async throws {
        try await attack("\(request) without a claim") {
            let origin = try await Origin()
            return try await outcome(request, ClaimID().bytes, from: thief, at: origin)
        }
    }

    @Test("With the claim of another device", arguments: Request.allCases)
    func stolenClaim(_ request: Request) async throws {
        try await attack("\(request) with the claim of another device") {
            let origin = try await Origin()
            let claim = try await origin.grantClaim(to: desktop)
            return try await outcome(request, claim.bytes, from: thief, at: origin)
        }
    }

    /// A secret that is compared as far as it goes: CWE-187; none at all is then as good as all of it.
    @Test("With no claim, half a claim and too long a one", arguments: Request.allCases, [0, 8, 17, 4096])
    func malformedClaim(_ request: Request, count: Int) async throws {
        try await attack("\(request) with a claim of \(count) bytes") {
            let origin = try await Origin()
            // The beginning of one that stands, and more.
            let genuine = try await origin.grantClaim(to: desktop).bytes
            let claim = Array((genuine + [UInt8](repeating: 0, count: 4096)).prefix(count))
            return try await outcome(request, claim, from: thief, at: origin)
        }
    }

    /// A claim that its holder let go, presented again.
    @Test("A claim that was let go", arguments: Request.allCases)
    func releasedClaim(_ request: Request) async throws {
        try await attack("\(request) with a claim that was let go") {
            let origin = try await Origin()
            let claim = try await origin.grantClaim(to: thief)
            await origin.offers.decide { $0.release(claim, by: thief) }
            return try await outcome(request, claim.bytes, from: thief, at: origin)
        }
    }

    /// KDE Connect took `deviceId` from the packet (CVE-2025-32900); Warpinator's protocol still states a name.
    @Test("An identity that is stated in a frame")
    func statedIdentity() async throws {
        try await attack("a continuation stream in the name of another device") {
            let origin = try await Origin()
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

    /// Requests that are for the user's own programs, sent by a device: accepting, offering and withdrawing in the
    /// user's name, and reading what other devices offer.
    ///
    /// KDE Connect's and LocalSend's services answer whoever is connected.
    @Test("Requests of the local socket, sent by another device")
    func localRequests() async throws {
        let requests: [(name: String, kind: WireRequest.OneOf_Kind)] = [
            ("status", .status(.init())), ("devices", .devices(.init())), ("activities", .activities(.init())),
            ("offer", .offer(.with { $0.type = "org.example.note" })), ("withdraw", .withdraw(.init())),
            ("accept", .accept(.init())), ("adoptState", .adoptState(.init())),
            ("register", .register(.init())), ("handoffSwitch", .handoffSwitch(.init())),
            ("documentRead", .documentRead(.init())), ("access", .access(.init())), ("transfers", .transfers(.init())),
            ("cancelTransfer", .cancelTransfer(.init())), ("discardPart", .discardPart(.init())),
            ("editDevices", .editDevices(.with { $0.name = "another" })),
            ("examine", .examine(.init())),
        ]
        let origin = try await Origin()
        for (name, kind) in requests {
            try await attack("\(name), which is for the user's own programs") { try await outcome(kind, at: origin) }
        }
        #expect(await origin.offers.visible.count == 1)
    }

    /// The other direction: what a node asks of its user's applications, and tells them, said by a device. It would
    /// read what the user is about to do, and put its own activity into the user's hands without the user's yes.
    @Test("Requests to the user's applications, sent by another device")
    func applicationRequests() async throws {
        let origin = try await Origin()
        let requests: [(name: String, kind: WireRequest.OneOf_Kind)] = [
            ("willSave", .willSave(.with { $0.activityID = Data(origin.activity.id.bytes) })),
            ("willContinue", .willContinue(.with { $0.type = "org.example.note" })),
            ("continueActivity", .continueActivity(.with { $0.payload.summary.type = "org.example.note" })),
            ("didFail", .didFail(.init())),
        ]
        for (name, kind) in requests {
            try await attack("\(name), which a node asks of its own applications") {
                try await outcome(kind, at: origin)
            }
        }
        #expect(await origin.offers.visible.count == 1)
    }

    /// The outcome of a request that no device may make.
    private func outcome(_ kind: WireRequest.OneOf_Kind, at origin: Origin) async throws -> Outcome {
        guard case .failure(let failure) = try await origin.answer(to: kind, from: thief).answer else {
            return .succeeded
        }
        return Outcome(succeeds: failure.code != .unsupported)
    }
}
