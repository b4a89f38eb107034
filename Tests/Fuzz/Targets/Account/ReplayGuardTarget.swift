// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

@testable import BatonAccount

/// The file of the replay guard, and what advertisements make of it.
enum ReplayGuardTarget: FuzzTarget {
    static let name = "replay-guard"
    static let maximumLength = 4096

    static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = Input(bytes)
        let judgements = Int(input.byte() & 31)
        let numbers = (0..<judgements).map { _ in
            (device: input.byte(), epoch: input.number(1), sequence: input.number(1), unixTime: input.number(1))
        }
        let file = input.remainder()
        guard var replays = ReplayGuard(decoding: file) else { return }
        expect(replays.encoded() == file, "the file reads as another one")
        expect(replays.saveNeed == .none, "a guard that was just read wants to be saved")
        var newest: [UInt8: (UInt64, UInt64)] = [:]
        for (device, epoch, sequence, unixTime) in numbers {
            let before = replays
            let id = DeviceID(subjectPublicKeyInfo: [device])
            let verdict = replays.judge(
                id, epoch: epoch, sequence: sequence, timeToLive: 120, unixTime: unixTime)
            let isNewer = newest[device].map { (epoch, sequence) > $0 } ?? true
            switch verdict {
            case .accepted:
                expect(isNewer, "an old advertisement was accepted")
                newest[device] = (epoch, sequence)
            case .duplicate, .expired, .replayed:
                expect(replays == before, "an advertisement that counts for nothing changed the guard")
            case .standing(let secondsLeft):
                expect((1...120).contains(secondsLeft), "an advertisement stands longer than it lives")
            }
            expect(replays.count <= ReplayGuard.capacity, "too many devices are remembered")
        }
        let saved = replays.encoded()
        expect(ReplayGuard(decoding: saved)?.encoded() == saved, "what was saved cannot be read")
    }

    static func seeds() -> [[UInt8]] {
        [0, 1, 3, 90].map { count in
            var replays = ReplayGuard()
            for number in 0..<UInt8(count) {
                _ = replays.judge(
                    DeviceID(subjectPublicKeyInfo: [number]), epoch: 5, sequence: UInt64(number), timeToLive: 120,
                    unixTime: 100)
            }
            // The current record, a newer one, the same again, older, what is over, and a device that is new.
            let judgements: [UInt8] = [
                6, 2, 5, 2, 150, 0, 5, 9, 0, 0, 5, 9, 0, 0, 4, 200, 0, 1, 5, 1, 0, 250, 0, 0, 0,
            ]
            return judgements + replays.encoded()
        }
    }
}
