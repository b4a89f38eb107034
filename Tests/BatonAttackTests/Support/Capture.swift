// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The output of `HostilePrograms.tap`: every frame of a link.
struct Capture {
    /// One direction of a TCP connection, its payloads in the order in which they came.
    struct Direction: Hashable {
        /// Address and port.
        let source: [UInt8]
        let target: [UInt8]
    }

    /// The content of one message of multicast DNS: what two messages of one device may have in common.
    enum Word: Hashable {
        /// A label of a name that is asked for, or that owns or is in a record.
        case label(String)
        /// The rest of a record.
        case data(type: Int, [UInt8])
    }

    /// The whole file, headers of frames among it.
    let bytes: Data
    /// TXT records under the service's name, with the instance's label, in the order in which they came.
    private(set) var records: [(instance: String, text: [UInt8])] = []
    /// The last record of each address that announces one, not those that it repeats in its questions, as known.
    private var announced: [[UInt8]: (instance: String, text: [UInt8])] = [:]
    /// The content of each message, in order.
    private(set) var messages: [Set<Word>] = []
    /// The bytes of each direction of each TCP connection.
    private(set) var said: [Direction: [UInt8]] = [:]

    init(_ file: URL) throws {
        bytes = try Data(contentsOf: file)
        var rest = bytes[...]
        while rest.count >= 4 {
            let length = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            guard rest.count >= 4 + length else { break }
            read(Array(rest.dropFirst(4).prefix(length)))
            rest = rest.dropFirst(4 + length)
        }
    }

    /// The last announcement of a lab host's device.
    func announcement(of host: Int) -> (instance: String, text: [UInt8])? { announced[[10, 77, 0, UInt8(host)]] }

    /// Whether a text is anywhere on the wire, also where it was cut between two segments or two strings of a record.
    func holds(_ text: String) -> Bool {
        let wanted = Data(text.utf8)
        let joined = said.values.map { Data($0) } + records.map { Data(Self.values(of: $0.text)) }
        return bytes.range(of: wanted) != nil || joined.contains { $0.range(of: wanted) != nil }
    }

    /// The values of a TXT record, one behind the other, without the keys of one letter.
    private static func values(of text: [UInt8]) -> [UInt8] {
        var values: [UInt8] = []
        var rest = text[...]
        while let count = rest.popFirst() {
            values += rest.prefix(Int(count)).dropFirst(2)
            rest = rest.dropFirst(Int(count))
        }
        return values
    }

    /// Takes an Ethernet frame apart: IPv4 without options, or IPv6 without extensions.
    private mutating func read(_ frame: [UInt8]) {
        guard frame.count > 54 else { return }
        let isIPv4 = frame[12] == 0x08 && frame[13] == 0x00
        guard isIPv4 || frame[12] == 0x86 && frame[13] == 0xDD else { return }
        let transport = isIPv4 ? frame[23] : frame[20]
        // Source and target stand in front of the transport's header, with its ports at the beginning.
        let (size, start) = isIPv4 ? (4, 34) : (16, 54)
        guard frame.count >= start + 20 else { return }
        let ports = frame[start..<(start + 4)]
        let (from, to) = (frame[(start - 2 * size)..<(start - size)], frame[(start - size)..<start])
        let direction = Direction(
            source: Array(from) + Array(ports.prefix(2)), target: Array(to) + Array(ports.suffix(2)))
        if transport == 6 {
            // Ethernet pads short frames: the length in the header counts, where there is one.
            let stated = isIPv4 ? Int(frame[16]) << 8 | Int(frame[17]) : Int(frame[18]) << 8 | Int(frame[19])
            let end = stated == 0 ? frame.count : min(frame.count, (isIPv4 ? 14 : 54) + stated)
            let payload = start + Int(frame[start + 12] >> 4) * 4
            if payload < end { said[direction, default: []] += frame[payload..<end] }
        } else if transport == 17, Array(ports.prefix(2)) == [0x14, 0xE9] {
            readNames(Array(frame[(start + 8)...]), of: Array(from))
        }
    }

    /// Reads the TXT records of a message of DNS (RFC 1035, section 4.1).
    private mutating func readNames(_ message: [UInt8], of address: [UInt8]) {
        guard message.count > 12 else { return }
        let counts = stride(from: 4, to: 12, by: 2).map { Int(message[$0]) << 8 | Int(message[$0 + 1]) }
        var position = 12
        var words: Set<Word> = []
        defer { messages.append(words) }
        for _ in 0..<counts[0] {
            guard let name = Self.name(in: message, at: &position) else { return }
            words.formUnion(name.map { .label($0) })
            position += 4
        }
        for _ in 0..<(counts[1] + counts[2] + counts[3]) {
            guard let name = Self.name(in: message, at: &position), position + 10 <= message.count else { return }
            let type = Int(message[position]) << 8 | Int(message[position + 1])
            let length = Int(message[position + 8]) << 8 | Int(message[position + 9])
            position += 10
            guard position + length <= message.count else { return }
            words.formUnion(name.map { .label($0) })
            words.formUnion(Self.words(of: message, position..<(position + length), type))
            if type == 16, name.count == 4, name[1] == "_baton" {
                let record = (instance: name[0], text: Array(message[position..<(position + length)]))
                records.append(record)
                // In a response; one of no text is not the device's.
                if message[2] & 0x80 != 0, length > 100 { announced[address] = record }
            }
            position += length
        }
    }

    /// What is in the data of a record: names taken apart, because they may be cut short by reference to others.
    private static func words(of message: [UInt8], _ range: Range<Int>, _ type: Int) -> [Word] {
        // The bytes in front of the name in a PTR, SRV and NSEC record; others have none.
        let heads = [12: 0, 33: 6, 47: 0]
        guard let head = heads[type], range.count > head else { return [.data(type: type, Array(message[range]))] }
        var position = range.lowerBound + head
        let labels = (name(in: message, at: &position) ?? []).map { Word.label($0) }
        return head == 0 ? labels : labels + [.data(type: type, Array(message[range.prefix(head)]))]
    }

    private static func name(in message: [UInt8], at position: inout Int) -> [String]? {
        var labels: [String] = []
        var cursor = position
        var end: Int?
        while cursor < message.count, labels.count < 16 {
            let length = Int(message[cursor])
            if length == 0 {
                position = end ?? cursor + 1
                return labels
            }
            if length >= 0xC0 {
                guard cursor + 1 < message.count else { return nil }
                end = end ?? cursor + 2
                cursor = (length & 0x3F) << 8 | Int(message[cursor + 1])
            } else {
                guard cursor + 1 + length <= message.count else { return nil }
                labels.append(String(decoding: message[(cursor + 1)..<(cursor + 1 + length)], as: UTF8.self))
                cursor += 1 + length
            }
        }
        return nil
    }
}
