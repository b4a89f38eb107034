// SPDX-License-Identifier: Apache-2.0

import BatonMessages
import BatonProtocol
import Foundation
import SwiftProtobuf
import Testing

/// The exchange in bytes of the wire specification is what two sessions of this package send each other.
@Suite("The exchange of the specification", .timeLimit(.minutes(1)))
struct ExchangeTests {
    private static let activity = Data(0x90...0x9F)
    private static let claim = Data(0xD0...0xDF)
    private let now = Instant(nanoseconds: 0)

    /// One side: a session, and all that it has sent.
    private struct Side: ~Copyable {
        var session: Session
        var sent: [UInt8] = []

        /// Sends all that waits to the other side, and returns what happened there.
        mutating func send(to other: inout Side, now: Instant) throws -> [Event] {
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            let count = buffer.withUnsafeMutableBytes { session.nextOutput(into: $0, now: now) }
            sent += buffer[..<count]
            var events: [Event] = []
            try buffer[..<count].withUnsafeBytes { bytes in
                var rest = bytes
                while !rest.isEmpty {
                    let taken = try other.session.receive(rest, now: now) { _, _ in }
                    rest = .init(rebasing: rest[taken...])
                    while let event = other.session.nextEvent() { events.append(event) }
                }
            }
            return events
        }
    }

    /// The frames of a side in the first block of the article, without PING and PONG.
    private static func documented(_ side: Character) throws -> [UInt8] {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Sources/BatonProtocol/BatonProtocol.docc/Exchange.md")
        let blocks = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "```\n")
        var bytes: [UInt8] = []
        var isWanted = false
        for line in blocks[1].split(separator: "\n") {
            if !line.hasPrefix(" ") { isWanted = line.first == side }
            guard isWanted else { continue }
            // Digits end where two spaces follow: the rest of the line is for people.
            let digits = line.dropFirst(3).prefix { $0.isHexDigit || $0 == " " }
                .components(separatedBy: "  ")[0].filter(\.isHexDigit)
            for start in stride(from: 0, to: digits.count, by: 2) {
                let pair = digits.dropFirst(start).prefix(2)
                bytes.append(try #require(UInt8(String(pair), radix: 16)))
            }
        }
        return bytes
    }

    /// Frames without PING and PONG, each on a line, so that a difference can be seen.
    private static func frames(_ bytes: [UInt8]) -> [String] {
        var frames: [String] = []
        var rest = bytes[...]
        while rest.count >= 10 {
            let length = rest.dropFirst(6).prefix(4).reduce(0) { $0 << 8 | Int($1) }
            let frame = rest.prefix(10 + length)
            if frame.first != 8 && frame.first != 9 {
                frames.append(frame.map { String(format: "%02x", $0) }.joined())
            }
            rest = rest.dropFirst(10 + length)
        }
        return frames
    }

    @Test("Each side sends the bytes of the article")
    func bytes() throws {
        var dialer = Side(session: Session(role: .dialer, now: now))
        var acceptor = Side(session: Session(role: .acceptor, now: now))
        let page = WireResponse.with {
            $0.payload.payload.summary = .with {
                $0.id = Self.activity
                $0.kind = .web
                $0.type = "NSUserActivityTypeBrowsingWeb"
                $0.title = "Swift.org"
                $0.since = 1_760_000_000
                $0.hasWebPage_p = true
            }
            $0.payload.payload.webPageURL = "https://swift.org/"
            $0.payload.claimID = Self.claim
        }
        let exchange: [(WireRequest, WireResponse)] = [
            (.with { $0.payload.activityID = Self.activity }, page),
            (.with { $0.continued.claimID = Self.claim }, .with { $0.continued = .init() }),
            (.with { $0.release.claimID = Self.claim }, .with { $0.release = .init() }),
        ]
        for (request, response) in exchange {
            let id = try dialer.session.open(Buffer(copying: request.serializedData()), now: now)
            dialer.session.finish(id)
            let asked = try dialer.send(to: &acceptor, now: now)
            let message = try #require(asked.compactMap { $0.request(of: id) }.first)
            #expect(try WireRequest(serializedBytes: message) == request)
            try acceptor.session.respond(id, Buffer(copying: response.serializedData()))
            acceptor.session.finish(id)
            #expect(try acceptor.send(to: &dialer, now: now).contains(.closed(id)))
        }
        dialer.session.goAway()
        _ = try dialer.send(to: &acceptor, now: now)
        acceptor.session.goAway()
        _ = try acceptor.send(to: &dialer, now: now)
        for (side, sent) in [("D" as Character, dialer.sent), ("A", acceptor.sent)] {
            let sent = Self.frames(sent)
            #expect(sent == Self.frames(try Self.documented(side)), "\(side) sent \(sent)")
        }
    }
}

extension Event {
    fileprivate func request(of stream: StreamID) -> [UInt8]? {
        guard case .opened(stream, let request) = self else { return nil }
        return request
    }
}
