// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTLS
import BatonTestSupport
import FoundationEssentials
import SwiftProtobuf
import Testing

@testable import BatonNode

/// The examinations that a device makes for another one, by its public door and on the real network of this machine.
@Suite("Examinations of the road between two devices", .timeLimit(.minutes(1)))
struct ExaminationTests {
    private static let loopback = IPAddress.ipv4Loopback

    private static func examinations(_ account: TestAccount) throws -> Examinations {
        let device = account.devices[0]
        let identity = try TLSIdentity(device.account.identity)
        let limits = NodeLimits()
        return Examinations(
            dialer: PeerDialer(
                context: try TLSContext(identity: identity), account: CurrentAccount(device.account), limits: limits,
                loops: EventLoopGroup(name: "examinations", count: 1), budget: NodeBudget(limits).devices),
            serviceType: "_baton._tcp")
    }

    private static func request(_ change: (inout WireExaminationRequest) -> Void = { _ in }) -> WireExaminationRequest {
        var request = WireExaminationRequest.with {
            $0.port = 40_000
            $0.gateNonce = Data(repeating: 1, count: 16)
            ($0.say, $0.listenFor) = ("abcdefghijk2", "abcdefghijk3")
        }
        change(&request)
        return request
    }

    private static func code(
        _ request: WireExaminationRequest, of examinations: Examinations, _ device: DeviceID,
        at address: IPAddress? = loopback
    ) async -> WireFailure.Code? {
        do {
            _ = try await examinations.answer(request, from: device.description, at: address)
            return nil
        } catch {
            return error.code
        }
    }

    @Test("A port of the system, a nonce or a label of another form, and no address are refused")
    func badRequests() async throws {
        let account = try TestAccount()
        let (examinations, other) = (try Self.examinations(account), account.devices[1].id)
        let bad = [
            Self.request { $0.port = 22 }, Self.request { $0.port = 65_536 }, Self.request { $0.gateNonce = Data() },
            Self.request { $0.say = "" }, Self.request { $0.say = "a.b" },
            Self.request { $0.listenFor = String(repeating: "a", count: 64) }, Self.request { $0.listenFor = "Ä" },
        ]
        for request in bad {
            #expect(await Self.code(request, of: examinations, other) == .invalidRequest, "\(request)")
        }
        #expect(await Self.code(Self.request(), of: examinations, other, at: nil) == .invalidRequest)
    }

    @Test("A device may say any time")
    func times() {
        #expect(RoadExaminer.difference(5, 3) == 2 && RoadExaminer.difference(3, 5) == -2)
        #expect(RoadExaminer.difference(.max, 1) == .max && RoadExaminer.difference(0, .max) == -.max)
    }

    @Test("A device makes one examination at a time, and the next after a pause")
    func flood() async throws {
        let account = try TestAccount()
        let (examinations, other) = (try Self.examinations(account), account.devices[1].id)
        async let first = examinations.answer(Self.request(), from: other.description, at: Self.loopback)
        async let second = Self.code(Self.request(), of: examinations, other)
        async let third = Self.code(Self.request(), of: examinations, other)
        let refused = await [second, third]
        let answer = try? await first
        // Which of the three comes first is not known: one is answered.
        #expect(refused.count { $0 == .limitExceeded } + (answer == nil ? 1 : 0) == 2, "\(refused)")
        if let answer { #expect(answer.dialBack == .refused, "nobody listens there") }
        try await eventually("the pause is over") {
            await Self.code(Self.request(), of: examinations, other) != .limitExceeded
        }
    }
}
