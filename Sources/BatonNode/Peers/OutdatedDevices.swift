// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import BatonProtocol

/// Devices that are not known here and seal with keys of an older generation: who slept through a revocation and is met
/// for the first time; and who was revoked, has these keys for good, and makes himself a new identity with them.
///
/// A pure value, told the time. An advertisement does not tell the one from the other, the certificate of a connection
/// does. So what they say counts for nothing but the dial that lets the first kind catch up, and few have their turn at
/// a time: they are not listed, not remembered, and take nobody's place. The others wait in a line, where who had no
/// turn yet goes before who had one: a thief's identities do not take turns with each other alone.
struct OutdatedDevices {
    /// Those that may be dialled at a time.
    static var bound: Int { 4 }
    /// How long each has for it before another may.
    static var turn: Duration { .seconds(20) }
    /// Those that wait; under 64 KiB. One more is heard again later, unless it had no turn, or one longer ago, and
    /// takes the place of one that had.
    static var waitingBound: Int { 32 }
    /// Those of them that name the same address, likewise: whoever makes up ever new ones at his own keeps nobody else
    /// from the line.
    static var waitingBoundAtAddress: Int { 4 }
    /// Devices of which is remembered that they had a turn, 32 bytes each; beyond it the one is forgotten whose was
    /// longest ago.
    static var servedBound: Int { 256 }

    /// What was heard last of a device that waits.
    private struct Heard {
        let advertisement: Advertisement
        let keys: GenerationKeys
        let instance: String
        let interface: UInt32
        let at: Instant
        let unixTime: UInt64

        /// Whether it names an address that another one names as well.
        func isAtAddress(of other: Heard) -> Bool {
            advertisement.content.addresses.contains(where: other.advertisement.content.addresses.contains)
        }

        /// Whether it is older than another: sent again by somebody else.
        func isOlder(than other: Heard) -> Bool {
            let (own, others) = (advertisement, other.advertisement)
            return (own.epoch, own.sequence) < (others.epoch, others.sequence)
        }

        /// After that it is no more what the device says.
        var end: Instant { at + .seconds(Int(advertisement.content.timeToLive)) }
    }

    private var table: PeerTable
    private var admitted: [DeviceID: (since: Instant, heard: Heard)] = [:]
    /// In the order in which they came.
    private var waiting: [Heard] = []
    /// Who had a turn, or has it; whose began last comes last.
    private var served: [DeviceID] = []

    init(keys: GenerationKeys) {
        table = PeerTable(keys: keys)
    }

    subscript(device: DeviceID) -> Peer? { table.peers[device] }

    /// Takes an advertisement that was opened with older keys.
    ///
    /// - Returns: the devices that may be dialled by that: this one, while it has its turn, and those whose turn
    ///   begins.
    mutating func receive(
        _ advertisement: Advertisement, keys: GenerationKeys, instance: String, interface: UInt32, now: Instant,
        unixTime: UInt64
    ) -> [DeviceID] {
        for (device, turn) in admitted where now - turn.since >= Self.turn {
            admitted[device] = nil
            table.remove(device: device)
        }
        let heard = Heard(
            advertisement: advertisement, keys: keys, instance: instance, interface: interface, at: now,
            unixTime: unixTime)
        waiting.removeAll { $0.end <= now }
        var turns: [DeviceID] = []
        if let turn = admitted[advertisement.device] {
            guard !heard.isOlder(than: turn.heard) else { return [] }
            admitted[advertisement.device]?.heard = heard
            show(heard)
            turns = [advertisement.device]
        } else {
            line(up: heard)
        }
        while admitted.count < Self.bound, let next = nextInLine {
            let heard = waiting.remove(at: next)
            let device = heard.advertisement.device
            admitted[device] = (now, heard)
            served.removeAll { $0 == device }
            served.append(device)
            if served.count > Self.servedBound { served.removeFirst() }
            show(heard)
            turns.append(device)
        }
        return turns
    }

    /// It is known by now, or of the account no more.
    mutating func remove(_ device: DeviceID) {
        admitted[device] = nil
        waiting.removeAll { $0.advertisement.device == device }
        table.remove(device: device)
    }

    /// What a device says that has its turn.
    private mutating func show(_ heard: Heard) {
        table.receive(
            heard.advertisement, keys: heard.keys, isOutdated: true, instance: heard.instance,
            interface: heard.interface, now: heard.at, unixTime: heard.unixTime)
    }

    private mutating func line(up heard: Heard) {
        let device = heard.advertisement.device
        if let place = waiting.firstIndex(where: { $0.advertisement.device == device }) {
            if !heard.isOlder(than: waiting[place]) { waiting[place] = heard }
            return
        }
        let neighbours = waiting.indices.filter { heard.isAtAddress(of: waiting[$0]) }
        let isShareFull = neighbours.count >= Self.waitingBoundAtAddress
        guard isShareFull || waiting.count >= Self.waitingBound else { return waiting.append(heard) }
        // Whose turn was last makes room for who had none, or one that is longer ago: no thief's identities keep the
        // line to themselves, whatever addresses they name.
        let others = isShareFull ? neighbours : Array(waiting.indices)
        guard let last = others.max(by: { lastTurn(waiting[$0]) < lastTurn(waiting[$1]) }),
            lastTurn(waiting[last]) > lastTurn(heard)
        else { return }
        waiting.remove(at: last)
        waiting.append(heard)
    }

    /// The place in the line of who is next: the first that had no turn, else whose turn was longest ago.
    private var nextInLine: Int? {
        waiting.indices.min { left, right in
            (lastTurn(waiting[left]), left) < (lastTurn(waiting[right]), right)
        }
    }

    /// Rises with each turn; -1 where there was none.
    private func lastTurn(_ heard: Heard) -> Int { served.firstIndex(of: heard.advertisement.device) ?? -1 }
}
