// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonEventLoop
import BatonTLS

@testable import BatonWeb

/// A web host's answer to the request for its file, status line, headers and body, over a real TLS connection: libcurl
/// parses it, and its callbacks check it.
///
/// The first byte of an input is how large the records are that the rest comes in; its highest bit ends the connection
/// without an end of TLS. The second is the number of repeats of the first header, in sixteens. The third is the number
/// of KiB of the last byte that follow. So both bounds are reached.
enum ResponseTarget: FuzzTarget {
    static let name = "response"
    static let maximumLength = 4096

    private static let lineFeed = UInt8(ascii: "\n")
    private static let host: WebHost = {
        guard let host = WebHost("example.org") else { fatalError("example.org is a host") }
        return host
    }()
    private static let site: LocalSite = {
        do { return try LocalSite(host: host.name) } catch { fatalError("\(error)") }
    }()
    private static let configuration: SiteAssociationFetcher.Configuration = {
        var configuration = SiteAssociationFetcher.Configuration()
        configuration.allowsPrivateAddresses = true
        configuration.anchors = .certificates(pem: site.pem)
        configuration.server = site.address
        return configuration
    }()

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        var input = Input(bytes)
        let (first, repeats, tail) = (input.byte(), Int(input.byte()), Int(input.byte()))
        let (response, repeated) = grown(input.remainder(), repeats: 16 * repeats, tail: tail << 10)
        // Some hundred records at the most.
        let size = first & 0x7F == 0 ? 16_384 : min(16_384, max(Int(first & 0x7F), response.count / 256))
        site.set(LocalSite.Answer(pieces: response.pieces(of: size).map(Array.init), isCut: first & 0x80 != 0))

        do throws(SiteAssociationError) {
            let deadline = MonotonicClock.nanoseconds() + 60_000_000_000
            let exchange = try HTTPSExchange(with: host, configuration, deadline: deadline) { false }
            for path in SiteAssociationFetcher.paths {
                let answer = try exchange.get(path)
                // Three digits, of which the first may be a 0 to libcurl.
                expect((0...999).contains(answer.status), "no status: \(answer.status)")
                expect(answer.body.count <= SiteAssociation.maximumBytes, "a body of \(answer.body.count) bytes")
                expect(answer.body.count <= response.count, "there is more in the body than came")
                expect(repeated <= HTTPSExchange.maximumHeaderBytes, "\(repeated) bytes of headers were taken")
                if answer.status == 200 {
                    _ = try SiteAssociationFetcher.read(answer.body, of: host, configuration.anchors)
                }
            }
        } catch {
            let reasons = [
                "does not speak HTTPS", "cannot be reached", "more than", "its file",
            ]
            expect(reasons.contains { error.description.contains($0) }, "\(error)")
        }
        judgeRequests()
    }

    /// Nothing that a site says makes it ask for anything else, or say more.
    private static func judgeRequests() {
        let asked = site.asked
        expect(asked.count <= 2 * SiteAssociationFetcher.paths.count, "it asks \(asked.count) times")
        for request in asked {
            let lines = String(decoding: request, as: UTF8.self).split(separator: "\r\n").map(String.init)
            let isKnown = SiteAssociationFetcher.paths.contains { lines.first == "GET \($0) HTTP/1.1" }
            let headers = Set(lines.dropFirst().map { $0.split(separator: ":").first.map(String.init) ?? "" })
            expect(isKnown && headers == ["Host", "User-Agent", "Accept"], "it asks: \(lines)")
            expect(lines.contains("Host: \(host)"), "it asks another host: \(lines)")
        }
    }

    /// The answer with its first header and its last byte said more often.
    ///
    /// - Returns: the answer, and bytes of that header in all; 0 where it is none that counts.
    private static func grown(_ answer: [UInt8], repeats: Int, tail: Int) -> (answer: [UInt8], repeated: Int) {
        var grown = answer
        var repeated = 0
        if let start = answer.firstIndex(of: lineFeed).map({ $0 + 1 }),
            let end = answer[start...].firstIndex(of: lineFeed).map({ $0 + 1 })
        {
            let line = answer[start..<end]
            let count = min(repeats, (64 << 10) / line.count)
            grown.insert(contentsOf: (0..<count).flatMap { _ in line }, at: start)
            // A line that begins with a space goes on with the one before, and one of nothing ends the headers.
            let isHeader = line.first.map { $0 > 32 } == true
            if isHeader { repeated = (count + 1) * line.count }
        }
        grown += [UInt8](repeating: answer.last ?? 0, count: answer.isEmpty ? 0 : tail)
        return (grown, repeated)
    }

    static func seeds() -> [[UInt8]] {
        let file = SignedFiles.content
        func said(_ lines: String..., body: String = "") -> [UInt8] {
            Array((lines.joined(separator: "\r\n") + "\r\n\r\n" + body).utf8)
        }
        let length = "Content-Length: \(file.utf8.count)"
        let good = said("HTTP/1.1 200 OK", "Content-Type: application/json", length, body: file)
        let chunked = said(
            "HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Trailer: X",
            body: "\(String(file.utf8.count, radix: 16));a=b\r\n\(file)\r\n0\r\nX: y\r\n\r\n")
        let answers = [
            said("HTTP/1.0 200 OK", "Server: x", body: file),
            said("HTTP/1.1 404 Not Found", "Content-Length: 9", body: "not found"),
            said("HTTP/1.1 404 Not Found", "Transfer-Encoding: chunked", "Connection: keep-alive", body: "0\r\n\r\n"),
            said(
                "HTTP/1.1 301 Moved", "Location: https://example.org/other", "Set-Cookie: a=b; Path=/",
                "Content-Length: 0"),
            said("HTTP/1.1 100 Continue") + good, said("HTTP/1.1 103 Early Hints", "Link: </a>") + good,
            said("HTTP/1.1 401 Unauthorized", "WWW-Authenticate: Basic realm=\"a\"", "Content-Length: 0"),
            said("HTTP/1.1 407 No", "Proxy-Authenticate: Negotiate", "Content-Length: 0"),
            said("HTTP/1.1 101 Switching Protocols", "Upgrade: h2c", "Connection: Upgrade"),
            said("HTTP/1.1 200 OK", "Content-Length: 5", "Content-Length: 7", body: file),
            said("HTTP/1.1 200 OK", "Content-Length: -1", body: file),
            said("HTTP/1.1 200 OK", "Content-Length: 18446744073709551615", body: file),
            said("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", body: "FFFFFFFFFFFFFFFF\r\n\(file)"),
            said("HTTP/1.1 200 OK", "Content-Encoding: gzip", "Alt-Svc: h3=\":443\"", body: file),
            said("HTTP/1.1 200 OK", "Strict-Transport-Security: max-age=1", " folded", length, body: file),
            said("HTTP/1.1 204 No Content", "Retry-After: 100000"), said("HTTP/2 200", length, body: file),
            said("HTTP/1.1 999 \u{1B}[2J", "X: \0", length, body: file), said("ICY 200 OK", "a: b", body: file),
            Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8), Array("hello".utf8), [],
        ]
        return [[0, 0, 0] + good, [1, 0, 0] + good, [0x87, 0, 0] + good, [0, 0, 0] + chunked, [3, 0, 0] + chunked]
            + answers.map { [0, 0, 0] + $0 }
            // More headers than are taken, more body than is taken, and as much as just is.
            + [[0, 255, 0] + good, [0, 0, 255] + said("HTTP/1.1 200 OK", "a: b", body: "["), [0, 40, 100] + good]
    }
}
