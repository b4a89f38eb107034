// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// One network on which every device runs Avahi 0.8 and a Baton node. Each node announces itself and browses for the
/// others.
///
/// The model sends the packets that captures of real hosts show (``DiscoveryCapture``). It counts them, and does not
/// build them. Each packet reaches all devices, and none is lost. Avahi remembers at most 4,096 records of a link, and
/// a device of the model remembers all.
///
/// The captures show where Avahi differs from RFC 6762:
/// - It sends each packet over IPv4, and again over IPv6.
/// - It announces a record three times, after 1 s and after 2 s more. The RFC asks for two times.
/// - It asks although another device has just asked the same, if that question had known answers.
/// - It may send a record again after 500 ms. The RFC asks for 1 s.
/// - It answers its own first question before the name is probed. Other devices see a name without a TXT record then,
///   and ask for that in vain.
///
/// The captures have no refresh at 80, 85, 90 or 95 % of a record's life, and the model has none. A node takes another
/// name after 15 minutes, and its PTR and TXT records would live for 75. Avahi does not refresh SRV and address
/// records, because no program asks for them.
struct DiscoveryModel {
    /// A kind of packet, with its sizes as captured.
    private struct Packet {
        let kind: DiscoveryTraffic.Kind
        let ipv4: Int
        let ipv6: Int

        /// The addresses and the name of a host.
        static let hostProbe = Packet(kind: .probe, ipv4: 245, ipv6: 211)
        static let host = Packet(kind: .response, ipv4: 227, ipv6: 199)
        /// SRV and TXT.
        static let nameProbe = Packet(kind: .probe, ipv4: 641, ipv6: 661)
        /// TXT, both PTR and SRV.
        static let name = Packet(kind: .response, ipv4: 686, ipv6: 706)
        /// PTR, TXT and SRV.
        static let answer = Packet(kind: .response, ipv4: 649, ipv6: 669)
        /// The PTR of a name that is not probed yet.
        static let pointer = Packet(kind: .response, ipv4: 98, ipv6: 118)
        static let text = Packet(kind: .response, ipv4: 602, ipv6: 622)
        static let goodbye = Packet(kind: .response, ipv4: 649, ipv6: 669)
        static let question = Packet(kind: .question, ipv4: 77, ipv6: 97)
        static let textQuestion = Packet(kind: .question, ipv4: 90, ipv6: 110)
        /// For the device's own TXT record, with that as the known answer.
        static let ownQuestion = Packet(kind: .question, ipv4: 608, ipv6: 628)
        /// The size of a known answer in a question, and the number of them that fits into a packet.
        static let knownAnswer = 27
        static let knownAnswers = 52
    }

    private enum Event {
        case send(Packet)
        /// A host's addresses or a TXT record, three times.
        case announce(Packet, left: Int)
        /// All records of a name, three times.
        case show(Int, left: Int)
        case point(Int)
        case query(Int, number: Int)
        case answer(Int)
        /// A node says again what it said before, unless it has taken another name since.
        case renew(Int, name: Int)
        case rename(Int)
        case change(Int)
    }

    /// The life of a PTR record, in seconds.
    private static let life = 4500.0

    let devices: Int
    /// How often a device announces another activity, in seconds; 0 if it offers none.
    private let changes: Double
    private var chance: Chance
    private var queue = EventQueue<Event>()
    private var now = 0.0
    private let came: [Double]
    /// When the PTR record of each device was on the network last; negative if never.
    private var lastShown: [Double]
    /// The number of names that each device has had.
    private var names: [Int]
    /// Answers that are due, so that one answers all who asked meanwhile.
    private var isAnswering: [Bool]
    private(set) var traffic = DiscoveryTraffic()
    /// Packets of the second with the most.
    private(set) var peak = 0
    private var second = (number: 0, packets: 0)
    /// From a change to the moment at which it is known, in milliseconds.
    private(set) var latencies: [Double] = []

    /// All devices come within the first minute.
    init(devices: Int, seed: UInt64, changes: Double) {
        (self.devices, self.changes) = (devices, changes)
        var chance = Chance(seed, 7, UInt64(devices))
        came = (0..<devices).map { _ in 60 * chance.fraction() }
        self.chance = chance
        lastShown = Array(repeating: -1, count: devices)
        names = Array(repeating: 0, count: devices)
        isAnswering = Array(repeating: false, count: devices)
        for (device, start) in came.enumerated() {
            probe(.hostProbe, from: start)
            add(.announce(.host, left: 3), at: start + 0.7)
            // The node has started then.
            add(.query(device, number: 0), at: start + 0.93)
            add(.point(device), at: start + 0.95 + 0.1 * chance.fraction())
            takeName(device, at: start + 1.02)
            if changes > 0 { add(.change(device), at: start + 2 + chance.interval(mean: changes)) }
        }
    }

    private mutating func add(_ event: Event, at time: Double) {
        queue.add(event, at: Instant(nanoseconds: UInt64(time * 1e9)))
    }

    /// Runs for so many seconds, and counts from the given one on.
    mutating func run(until end: Double, countingFrom start: Double) {
        var isCounting = false
        while let next = queue.nextTime, Double(next.nanoseconds) < end * 1e9, let (time, event) = queue.next() {
            now = Double(time.nanoseconds) / 1e9
            if now >= start, !isCounting {
                (traffic, peak, latencies, isCounting) = (DiscoveryTraffic(), 0, [], true)
            }
            happen(event)
        }
    }

    private mutating func happen(_ event: Event) {
        switch event {
        case .send(let packet): send(packet)
        case .announce(let packet, let left):
            send(packet)
            if left > 1 { add(.announce(packet, left: left - 1), at: nextAnnouncement(left)) }
        case .show(let device, let left):
            send(.name)
            lastShown[device] = now
            if left == 3, names[device] > 1 { send(.goodbye) }
            if left > 1 { add(.show(device, left: left - 1), at: nextAnnouncement(left)) }
        case .point(let device): point(device)
        case .query(let device, let number):
            // 1 s, 2 s, 4 s … 60 min.
            add(.query(device, number: number + 1), at: now + Double(min(1 << min(number, 12), 3600)))
            ask(device)
        case .answer(let device):
            isAnswering[device] = false
            send(.answer)
            lastShown[device] = now
        case .renew(let device, let name):
            guard names[device] == name else { return }
            add(.announce(.text, left: 3), at: now + 0.02 + 0.35 * chance.fraction())
            add(.renew(device, name: name), at: now + renewal)
        case .rename(let device): takeName(device, at: now + 0.25 * chance.fraction())
        case .change(let device):
            add(.change(device), at: now + chance.interval(mean: changes))
            // The node asks for its own record, so that Avahi sends it after 100 ms at the latest.
            let delay = min(0.02 + 0.25 * chance.fraction() + 0.1 * chance.fraction(), 0.1)
            latencies.append(delay * 1000)
            add(.send(.ownQuestion), at: now + 0.1)
            add(.announce(.text, left: 3), at: now + delay)
        }
    }

    // MARK: - Announcing

    /// When a node renews its record, in seconds: at half its time to live, which is shorter while it offers something.
    private var renewal: Double { changes > 0 ? 60 : 300 }

    private mutating func probe(_ packet: Packet, from start: Double) {
        for number in 0..<3 { add(.send(packet), at: start + 0.25 * Double(number)) }
    }

    private mutating func takeName(_ device: Int, at start: Double) {
        names[device] += 1
        probe(.nameProbe, from: start)
        add(.show(device, left: 3), at: start + 0.7)
        add(.renew(device, name: names[device]), at: start + renewal)
        add(.rename(device), at: start + 900 * (0.9 + 0.2 * chance.fraction()))
    }

    private mutating func nextAnnouncement(_ left: Int) -> Double {
        now + Double(4 - left) + 0.25 * chance.fraction()
    }

    /// A device tells its first name before it has probed for it. The others would ask for the TXT record at nearly the
    /// same moment, and the first question suppresses most of the others. In the captures one device asked, and 8 % of
    /// the rest.
    private mutating func point(_ device: Int) {
        send(.pointer)
        let others = lastShown.count { $0 >= 0 }
        lastShown[device] = now
        guard others > 0 else { return }
        for _ in 0..<Int(1 + 0.08 * Double(others) + chance.fraction()) { send(.textQuestion) }
    }

    // MARK: - Asking

    /// A device asks for all devices, and tells which it knows. The others answer.
    private mutating func ask(_ asker: Int) {
        var known = 0
        for device in 0..<devices where lastShown[device] >= 0 {
            // An answer is suppressed if more than half of its life is left.
            if lastShown[device] >= came[asker], now - lastShown[device] < Self.life / 2 {
                known += 1
            } else if device != asker, now - lastShown[device] > 0.5, !isAnswering[device] {
                isAnswering[device] = true
                add(.answer(device), at: now + 0.02 + 0.1 * chance.fraction())
            }
        }
        traffic.knownAnswers += 2 * known
        repeat {
            let some = min(known, Packet.knownAnswers)
            send(.question, more: some * Packet.knownAnswer)
            known -= some
        } while known > 0
    }

    private mutating func send(_ packet: Packet, more: Int = 0) {
        traffic.count(packet.kind, bytes: packet.ipv4 + more)
        traffic.count(packet.kind, bytes: packet.ipv6 + more)
        if Int(now) != second.number { second = (Int(now), 0) }
        second.packets += 2
        peak = max(peak, second.packets)
    }

    /// Bytes that each device keeps of the others: their records, without the headers of a packet.
    var memory: Int { devices * (Packet.name.ipv4 - 42) }
}
