// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonAccount
@testable import BatonCore
@testable import BatonNode

/// How long an account is looked for, and which devices are asked, in simulated time.
@Suite("A search for an account")
struct AccountSearchTests {
    private static let start = Instant(nanoseconds: 5_000_000_000)
    private static let hour = Duration.seconds(3600)
    private static let first = GenerationID(number: 0, list: nil)

    /// One search, and its devices by number.
    private final class Scene {
        private var search = AccountSearch(within: hour, from: start)

        var isIncomplete: Bool { search.isIncomplete }

        private func candidate(_ number: UInt8, _ keys: GenerationID) -> AccountSearch.Candidate {
            let key = [UInt8](repeating: number, count: 32)
            return AccountSearch.Candidate(device: DeviceID(ed25519PublicKey: key), keys: keys)
        }

        func asks(_ number: UInt8, under keys: GenerationID = first, sequence: UInt64 = 1) -> Bool {
            search.begin(candidate(number, keys), (1, sequence))
        }

        func answer(_ number: UInt8, under keys: GenerationID = first, isTaken: Bool = true, after time: Duration) {
            search.end(candidate(number, keys), isTaken: isTaken, at: start + time)
        }

        func isOver(after time: Duration, isBehind: Bool = false) -> Bool {
            search.advance(to: start + time, isBehind: isBehind)
            return search.isOver
        }
    }

    private let scene = Scene()

    @Test("An answer at once does not end it before three seconds are over, and then it is over")
    func settling() {
        #expect(scene.asks(1))
        scene.answer(1, after: .zero)
        #expect(!scene.isOver(after: .milliseconds(2999)))
        #expect(scene.isOver(after: .seconds(3)) && !scene.isIncomplete && !scene.asks(2))
    }

    @Test("A later answer ends it after a second, and the devices that were found by then are waited for")
    func grace() {
        #expect(scene.asks(1))
        scene.answer(1, after: .seconds(10))
        #expect(!scene.isOver(after: .milliseconds(10_900)))
        #expect(scene.asks(2) && !scene.isOver(after: .seconds(20)))
        scene.answer(2, isTaken: false, after: .seconds(25))
        #expect(scene.isOver(after: .seconds(25)))
    }

    @Test("An answer under older keys than were heard does not shorten it, and a device that comes later is asked too")
    func older() {
        let newer = GenerationID(number: 1, list: ListDigest(rawValue: 1))
        #expect(scene.asks(1))
        scene.answer(1, after: .zero)
        #expect(scene.asks(3, under: newer))
        // Long after the time in which the thief's answer alone would have ended it.
        #expect(!scene.isOver(after: .seconds(30)) && scene.asks(2))
        scene.answer(2, after: .seconds(30))
        #expect(!scene.isOver(after: .seconds(60)))
        scene.answer(3, under: newer, after: .seconds(60))
        #expect(!scene.isOver(after: .milliseconds(60_900)) && scene.isOver(after: .seconds(61)))
    }

    @Test("An answer that could not be taken over does not shorten it, and it is over at its limit")
    func untaken() {
        #expect(scene.asks(1))
        scene.answer(1, isTaken: false, after: .zero)
        #expect(!scene.isOver(after: Self.hour - .seconds(1)) && scene.isOver(after: Self.hour))
    }

    @Test("It takes up to three times its limit while there are names that nobody has looked at")
    func behind() {
        #expect(!scene.isOver(after: Self.hour * 2, isBehind: true))
        #expect(scene.isOver(after: Self.hour * 2) && !scene.isIncomplete)
        let late = Scene()
        #expect(!late.isOver(after: Self.hour * 3 - .seconds(1), isBehind: true))
        #expect(late.isOver(after: Self.hour * 3, isBehind: true) && late.isIncomplete)
    }

    @Test("So many devices of each generation are asked, each by the newest it says")
    func bounds() {
        #expect(AccountSearch.bound == 16)
        let generations = [Self.first] + (1...2).map { GenerationID(number: 1, list: ListDigest(rawValue: $0)) }
        for keys in generations {
            for number in 1...UInt8(AccountSearch.bound) {
                #expect(scene.asks(number, under: keys, sequence: 5))
                // Sent again, or older.
                for sequence in [UInt64(5), 4] { #expect(!scene.asks(number, under: keys, sequence: sequence)) }
            }
            #expect(!scene.asks(100, under: keys, sequence: 5))
        }
        #expect(scene.asks(1, sequence: 6))
    }

    @Test("The outcome names the first device whose lists cannot be taken over, and has what the others know")
    func outcome() throws {
        let account = try TestAccount(devices: 4)
        var own = account.devices[3].account
        let given = try own.revoke(
            [DeviceID(ed25519PublicKey: [UInt8](repeating: 7, count: 32))], with: AccountSecrets(account.key))
        var outcome = AccountLookup.Outcome(account: account.devices[0].account)
        func answer(_ number: Int, _ lists: Result<[GivenList], RevocationError>) -> AccountLookup.Answer {
            let id = account.devices[number].id.description
            let device = KnownDevices.Entry(deviceID: id, name: "", seen: 0, revision: 0)
            return AccountLookup.Answer(device: device, lists: lists)
        }
        let answers = [
            answer(1, .success([GivenList(given.list, keys: nil)])), answer(2, .failure(.unknownFormat(2))),
            answer(3, .success([given])),
        ]
        let areTaken = answers.map { outcome.take($0) }
        #expect(areTaken == [false, false, true])
        #expect(outcome.met.count == 3 && outcome.account.state == own.state)
        #expect(outcome.untaken?.device.deviceID == account.devices[1].id.description)
        #expect(outcome.untaken?.reason == .wrongKeys)
    }
}
