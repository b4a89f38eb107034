// SPDX-License-Identifier: Apache-2.0

import BatonAccount

/// Which devices an ``AccountLookup`` asks: a pure value.
///
/// Nothing tells it whether an advertisement is what the device says now or one that somebody else sends again. So a
/// device is asked by each that is newer than those before, at once: what is older makes room for it.
struct AskedDevices {
    /// Devices that are asked of each generation of keys: whoever was revoked can announce any number of them, and only
    /// under the keys of before. Lists that were signed apart begin generations apart, also where they share a number.
    static let bound = 16
    /// Questions to one device at once.
    static let boundAtOnce = 2

    /// Numbers a question.
    typealias Question = Int

    private struct Asked {
        var newest: (epoch: UInt64, sequence: UInt64)
        /// The oldest first.
        var running: [Question] = []
        /// By the newest it said.
        var last: Question
    }

    private struct Name: Hashable {
        let device: DeviceID
        let generation: GenerationID
    }

    private var devices: [Name: Asked] = [:]
    private var lastQuestion = 0

    /// Whether somebody may still answer by the newest that was heard of them.
    var isWaiting: Bool { devices.values.contains { $0.running.contains($0.last) } }

    /// - Returns: the question to begin, and the one to the same device that is to end for it; `nil` where the device
    ///   is not to be asked: by what is no newer than before, and where others of the generation have left no room.
    mutating func begin(
        _ device: DeviceID, _ moment: (epoch: UInt64, sequence: UInt64), under generation: GenerationID
    ) -> (question: Question, superseded: Question?)? {
        let name = Name(device: device, generation: generation)
        if let asked = devices[name] {
            guard moment > asked.newest else { return nil }
        } else {
            guard devices.keys.count(where: { $0.generation == generation }) < Self.bound else { return nil }
        }
        lastQuestion += 1
        var running = (devices[name]?.running ?? []) + [lastQuestion]
        let superseded = running.count > Self.boundAtOnce ? running.removeFirst() : nil
        devices[name] = Asked(newest: moment, running: running, last: lastQuestion)
        return (lastQuestion, superseded)
    }

    /// A question has ended.
    mutating func end(_ question: Question) {
        for name in devices.keys { devices[name]?.running.removeAll { $0 == question } }
    }
}
