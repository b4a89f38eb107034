// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonCore

@Suite("Connections and dials")
struct LinksTests {
    private final class Line: Sendable {}

    private var links: Links<Line, Int>
    private let start = Instant(nanoseconds: 1_000_000_000)

    init() {
        var limits = LinkLimits()
        (limits.connections, limits.connectionsPerDevice, limits.dials) = (8, 2, 6)
        (limits.handshakes, limits.handshakesPerAddress) = (4, 2)
        links = Links(limits)
    }

    /// - Returns: whether it is dialled in brief.
    private mutating func dial(
        _ device: String, isProved: Bool = false, isWanted: Bool = false, at host: Int
    ) throws -> Bool {
        try links.dial(device, isProved: isProved, isWanted: isWanted, at: [host])
    }

    @Test("Unproved devices are dialled a few at a time, half of them at one host")
    mutating func brief() throws {
        for device in ["a", "b"] { #expect(try dial(device, at: 1)) }
        #expect(throws: LinkRefusal.tooManyUnproved) { try dial("c", at: 1) }
        #expect(try dial("c", at: 2))
        // Half of all dials are for proved devices.
        #expect(throws: LinkRefusal.tooManyDials) { try dial("d", isWanted: true, at: 3) }
        #expect(try !dial("e", isProved: true, at: 4))
        #expect(try dial("a", at: 1))
        #expect(try dial("a", isWanted: true, at: 1))
        links.endDial(of: "a")
        #expect(try dial("d", at: 1))
    }

    @Test("A dialled connection takes the place of an older one that no handoff holds")
    mutating func displaced() throws {
        let lines = (0..<4).map { _ in Line() }
        for line in lines[..<2] { #expect(try links.add(line, of: "a", isDialled: false) == nil) }
        #expect(throws: LinkRefusal.tooManyOfDevice) {
            try links.add(lines[2], of: "a", isDialled: false)
        }
        links.hold(lines[0])
        _ = try dial("a", isProved: true, at: 1)
        let displaced = try links.add(lines[2], of: "a", isDialled: true)
        #expect(displaced === lines[1] && links.count == 2)
    }

    @Test("A connection that is idle for long enough is closed, unless a handoff holds it")
    mutating func idle() throws {
        let line = Line()
        _ = try links.add(line, of: "a", isDialled: false)
        func isOver(_ seconds: Int, isIdle: Bool = true) -> Bool {
            links.note(line, isIdle: isIdle, now: start + .seconds(seconds))
        }
        #expect(!isOver(0) && !isOver(59) && isOver(60))
        #expect(!isOver(61, isIdle: false) && !isOver(62) && !isOver(121))
        links.hold(line)
        #expect(!isOver(122) && !isOver(500))
        links.letGo(of: line)
        #expect(!isOver(501) && !isOver(560) && isOver(561))
    }

    @Test("No bound is passed, whatever happens in which order")
    mutating func walk() throws {
        var random = SeededGenerator()
        print("LinksTests: \(random)")
        var handshakes: [(line: Line, host: Int)] = []
        var dialled: Set<String> = []
        for step in 0..<3000 {
            let device = "\(Int.random(in: 0..<12, using: &random))"
            let host = Int.random(in: 0..<4, using: &random)
            switch Int.random(in: 0..<7, using: &random) {
            case 0:
                let line = Line()
                if links.beginHandshake(on: line, from: host) { handshakes.append((line, host)) }
            case 1:
                guard let index = handshakes.indices.randomElement(using: &random) else { continue }
                let line = handshakes.remove(at: index).line
                links.endHandshake(on: line)
                _ = try? links.add(line, of: device, isDialled: false)
            case 2, 3:
                let isProved = Bool.random(using: &random)
                if (try? dial(device, isProved: isProved, isWanted: .random(using: &random), at: host)) != nil {
                    dialled.insert(device)
                }
            case 4:
                guard let done = dialled.randomElement(using: &random) else { continue }
                if Bool.random(using: &random) { _ = try? links.add(Line(), of: done, isDialled: true) }
                links.endDial(of: done)
                dialled.remove(done)
            case 5: if let line = links.lines.randomElement(using: &random) { links.remove(line) }
            case _:
                guard let line = links.lines.randomElement(using: &random) else { continue }
                if Bool.random(using: &random) { links.hold(line) } else { links.letGo(of: line) }
            }
            #expect(links.count <= 8 && dialled.count <= 6 && handshakes.count <= 4, "\(random), step \(step)")
            for device in links.devices { #expect(links.lines(to: device).count <= 2, "\(random), step \(step)") }
            for host in 0..<4 { #expect(handshakes.count { $0.host == host } <= 2, "\(random), step \(step)") }
        }
    }
}
