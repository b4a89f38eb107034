// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Testing

@testable import BatonDiscovery

@Suite struct AnnouncedTextTests {
    private static let type = "_baton._tcp"

    /// A response with these records, each a name and what follows it.
    private func packet(flags: [UInt8] = [0x84, 0], _ records: [[UInt8]]) -> [UInt8] {
        [0, 0] + flags + [0, 0, 0, UInt8(records.count), 0, 0, 0, 0] + records.flatMap { $0 }
    }

    private func name(_ labels: String...) -> [UInt8] {
        labels.flatMap { [UInt8($0.utf8.count)] + $0.utf8 } + [0]
    }

    private func record(
        _ name: [UInt8], _ text: [UInt8], kind: UInt8 = 16, group: [UInt8] = [0x80, 1], timeToLive: UInt8 = 120
    ) -> [UInt8] {
        name + [0, kind] + group + [0, 0, 0, timeToLive, UInt8(text.count >> 8), UInt8(text.count & 0xFF)] + text
    }

    private func texts(_ packet: [UInt8]) -> [AnnouncedText] {
        packet.withUnsafeBytes { AnnouncedText.all(in: $0, type: Self.type) }
    }

    @Test func recordsOfTheType() {
        let own = name("abc", "_baton", "_tcp", "local")
        #expect(texts(packet([record(own, [1, 65])])) == [AnnouncedText(instance: "abc", text: [1, 65])])
        #expect(texts(packet([record(name("abc", "_BATON", "_tcp", "Local"), [1, 65])])).count == 1)
        for other in [
            record(name("abc", "_http", "_tcp", "local"), [1, 65]), record(own, [1, 65], kind: 33),
            record(own, [1, 65], group: [0, 3]), record(own, [1, 65], timeToLive: 0),
            record(name("a", "b", "_baton", "_tcp", "local"), [1, 65]), record(name(), [1, 65]),
        ] {
            #expect(texts(packet([other])).isEmpty)
            // It is passed over, and the next one is not.
            #expect(texts(packet([other, record(own, [0])])).count == 1)
        }
    }

    /// A record of pointers, of which each leads to the one before, would cost thousands of steps for each name that
    /// begins at its end.
    @Test func chainsOfPointers() {
        let own = name("abc", "_baton", "_tcp", "local")
        for count in [7, 8, 2000] {
            // The text of the first record begins after the header, its name and 10 bytes.
            let start = 12 + own.count + 10
            let chain = (0..<count).flatMap { index -> [UInt8] in
                let target = index == 0 ? 12 : start + 2 * (index - 1)
                return [0xC0 | UInt8(target >> 8), UInt8(target & 0xFF)]
            }
            let last = start + 2 * (count - 1)
            // The name of the second record is one pointer more.
            let second = record([0xC0 | UInt8(last >> 8), UInt8(last & 0xFF)], [1, 66])
            let found = texts(packet([record(own, chain), second]))
            #expect(found.count == (count < 8 ? 2 : 1), "\(count) pointers")
        }
        let pointer = record([0xC0, 12], [1, 66])
        #expect(texts(packet([record(own, [1, 65]), pointer])).count == 2)
    }

    @Test func onlyResponses() {
        let own = record(name("abc", "_baton", "_tcp", "local"), [1, 65])
        #expect(texts(packet(flags: [0, 0], [own])).isEmpty)
        #expect(texts(packet(flags: [0x88, 0], [own])).isEmpty)
        var withQuestion = packet([own])
        withQuestion[5] = 1
        #expect(texts(withQuestion).isEmpty)
    }

    @Test func aUnicastResponseRepeatsTheQuestions() {
        let own = record(name("abc", "_baton", "_tcp", "local"), [1, 65])
        let question = name("_baton", "_tcp", "local") + [0, 12, 0, 1]
        var whole = packet([question + own])
        whole[5] = 1
        let read = { (bytes: [UInt8]) in
            bytes.withUnsafeBytes { AnnouncedText.all(in: $0, type: Self.type, isUnicast: true) }
        }
        #expect(read(whole) == [AnnouncedText(instance: "abc", text: [1, 65])])
        for count in 0..<whole.count { #expect(read(Array(whole[..<count])).isEmpty, "\(count) bytes") }
    }

    @Test func questions() {
        let asked = MulticastQuery.packet(type: Self.type, instance: "abc234")
        let read = { (bytes: [UInt8]) in bytes.withUnsafeBytes { MulticastQuery.instances(in: $0, type: Self.type) } }
        #expect(read(asked) == ["abc234"])
        var response = asked
        response[2] = 0x84
        #expect(read(response).isEmpty)
        #expect(
            MulticastQuery.packet(type: "_http._tcp", instance: "abc234").withUnsafeBytes {
                MulticastQuery.instances(in: $0, type: Self.type).isEmpty
            })
        for count in 0..<asked.count { #expect(read(Array(asked[..<count])).isEmpty, "\(count) bytes") }
    }

    @Test func compressedNames() {
        let first = record(name("abc", "_baton", "_tcp", "local"), [1, 65])
        // The type of the first name begins at byte 16.
        let second = record([3] + Array("def".utf8) + [0xC0, 16], [1, 66])
        #expect(texts(packet([first, second])).map(\.instance) == ["abc", "def"])
        // To itself, and forward.
        #expect(texts(packet([record([0xC0, 12], [1, 65])])).isEmpty)
        #expect(texts(packet([record([0xC0, 200], [1, 65])])).isEmpty)
    }

    @Test func aTextThatIsTooLongIsEmpty() {
        let own = name("abc", "_baton", "_tcp", "local")
        let longest = [UInt8](repeating: 1, count: TextRecord.maximumLength)
        #expect(texts(packet([record(own, longest)])).first?.text == longest)
        #expect(texts(packet([record(own, longest + [1])])).first?.text.isEmpty == true)
    }

    @Test func truncatedPacketsTellWhatIsWhole() {
        let own = name("abc", "_baton", "_tcp", "local")
        let whole = packet([record(own, [1, 65]), record(own, [1, 66])])
        let firstEnd = 12 + record(own, [1, 65]).count
        for count in 0...whole.count {
            let expected = count < firstEnd ? 0 : count < whole.count ? 1 : 2
            #expect(texts(Array(whole[..<count])).count == expected, "\(count) bytes")
        }
    }
}
