// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// One network on which every device announces Baton's service and browses for it, as RFC 6762 says.
///
/// Each packet goes to all devices, and none is lost. So all devices that were there know the same of a record: when it
/// was last on the network. The model counts packets and bytes; it does not build them.
struct DiscoveryModel {
    /// Bytes of packets and of their parts. A header is of Ethernet, IPv4, UDP and DNS.
    private enum Size {
        static let header = 14 + 20 + 8 + 12
        /// A question for the service type.
        static let question = 24
        /// A known answer: a compressed PTR record.
        static let knownAnswer = 12 + 34
        /// PTR, SRV, TXT with the sealed advertisement, A and AAAA of one device.
        static let records = 46 + 40 + 330 + 16 + 28
        /// The largest packet; more known answers follow in further ones.
        static let packet = 1472
    }

    /// The life of PTR and TXT records, and of SRV and address records, in seconds.
    private static let longLife = 4500.0
    private static let shortLife = 120.0

    private enum Event {
        case announce(Int, left: Int)
        case query(Int, number: Int)
        case answer(Int)
        /// A device asks for what it keeps of another one, before that expires.
        case refresh(Int, isLong: Bool, seen: Double)
        case change(Int)
    }

    let devices: Int
    /// How often a device announces another activity, in seconds; 0 for never.
    private let changes: Double
    private var chance: Chance
    private var queue = EventQueue<Event>()
    private var now = 0.0
    /// When the records of each device were on the network last; negative if never.
    private var lastLong: [Double]
    private var lastShort: [Double]
    /// Answers that are due, so that one answers all who asked meanwhile.
    private var isAnswering: [Bool]
    private var lastQuery = -1000.0
    private(set) var bytes = 0
    private(set) var packets = 0
    /// Packets of the second with the most.
    private(set) var peak = 0
    private var second = (number: 0, packets: 0)
    /// From a change to the moment at which it is known, in milliseconds.
    private(set) var latencies: [Double] = []

    init(devices: Int, seed: UInt64, changes: Double) {
        (self.devices, self.changes) = (devices, changes)
        chance = Chance(seed, 7, UInt64(devices))
        lastLong = Array(repeating: -1, count: devices)
        lastShort = lastLong
        isAnswering = Array(repeating: false, count: devices)
        for device in 0..<devices {
            let start = 60 * chance.fraction()
            // Three probes of 250 ms come first.
            add(.announce(device, left: 2), at: start + 0.75)
            add(.query(device, number: 0), at: start + 0.02 + 0.1 * chance.fraction())
            if changes > 0 { add(.change(device), at: start + chance.interval(mean: changes)) }
        }
    }

    private mutating func add(_ event: Event, at time: Double) {
        queue.add(event, at: Instant(nanoseconds: UInt64(time * 1e9)))
    }

    private mutating func send(_ size: Int) {
        packets += 1
        bytes += Size.header + size
        if Int(now) != second.number { second = (Int(now), 0) }
        second.packets += 1
        peak = max(peak, second.packets)
    }

    /// Runs for so many seconds, and counts from the given one on.
    mutating func run(until end: Double, countingFrom start: Double) {
        var isCounting = false
        while let next = queue.nextTime, Double(next.nanoseconds) < end * 1e9, let (time, event) = queue.next() {
            now = Double(time.nanoseconds) / 1e9
            if now >= start, !isCounting {
                (bytes, packets, peak, latencies, isCounting) = (0, 0, 0, [], true)
            }
            happen(event)
        }
    }

    private mutating func happen(_ event: Event) {
        switch event {
        case .announce(let device, let left):
            show(device)
            if left > 1 { add(.announce(device, left: left - 1), at: now + 1) }
        case .query(let device, let number):
            // 1 s, 2 s, 4 s … 60 min; a question that another device has just asked is not asked again.
            let pause = Double(min(1 << min(number, 12), 3600))
            add(.query(device, number: number + 1), at: now + pause * (1 + 0.02 * chance.fraction()))
            if now - lastQuery > 0.1 || number == 0 { ask(isFirst: number == 0) }
        case .answer(let device):
            isAnswering[device] = false
            show(device)
        case .refresh(let device, let isLong, let seen):
            guard (isLong ? lastLong : lastShort)[device] == seen, !isAnswering[device] else { return }
            send(Size.question)
            answer(device)
        case .change(let device):
            add(.change(device), at: now + chance.interval(mean: changes))
            // The responder waits for 20 to 120 ms, as for an answer.
            let delay = 0.02 + 0.1 * chance.fraction()
            latencies.append(delay * 1000)
            add(.announce(device, left: 2), at: now + delay)
        }
    }

    /// A device asks for all devices, and tells which it knows.
    private mutating func ask(isFirst: Bool) {
        lastQuery = now
        // An answer is suppressed if more than half of its life is left.
        let known = isFirst ? 0 : lastLong.count { $0 >= 0 && now - $0 < Self.longLife / 2 }
        var left = Size.question + known * Size.knownAnswer
        while left > 0 {
            send(min(left, Size.packet))
            left -= Size.packet
        }
        for device in 0..<devices where lastLong[device] >= 0 {
            let isOld = now - lastLong[device] >= Self.longLife / 2
            // Nobody multicasts a record twice within a second.
            if isFirst || isOld, now - lastLong[device] > 1 { answer(device) }
        }
    }

    private mutating func answer(_ device: Int) {
        guard !isAnswering[device] else { return }
        isAnswering[device] = true
        add(.answer(device), at: now + 0.02 + 0.1 * chance.fraction())
    }

    /// The records of a device are on the network. The first of all who keep them asks again at 80 to 82 % of their
    /// life; what it hears serves the others.
    private mutating func show(_ device: Int) {
        send(Size.records)
        (lastLong[device], lastShort[device]) = (now, now)
        let first = 0.8 + 0.02 / Double(devices)
        add(.refresh(device, isLong: false, seen: now), at: now + Self.shortLife * first)
        add(.refresh(device, isLong: true, seen: now), at: now + Self.longLife * first)
    }

    /// Bytes that each device keeps of the others: their records.
    var memory: Int { devices * Size.records }
}
