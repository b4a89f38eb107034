@testable import BatonAccount
@testable import BatonTLS

/// The first bytes of a stranger on the port: ClientHello, server name, and whatever else the TLS session takes before
/// anybody is known.
///
/// The first byte of an input is the size of the pieces.
enum TLSTarget: FuzzTarget {
    static let name = "tls"
    static let maximumLength = 4096

    private static let context = {
        do { return try makeContext(AdvertisementTarget.Fixture.shared.identity) } catch { fatalError("\(error)") }
    }()
    // reason for unsafe: one input at a time uses them
    nonisolated(unsafe) private static let plain = UnsafeMutableRawBufferPointer.allocate(
        byteCount: 16_384, alignment: 16)
    nonisolated(unsafe) private static let wire = UnsafeMutableRawBufferPointer.allocate(
        byteCount: 65_536, alignment: 16)

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        var input = Input(bytes)
        let size = Int(input.byte())
        let session = try TLSSession(server: context)
        var written = 0
        do throws(TLSError) {
            for piece in input.remainder().pieces(of: size) {
                // Not `withUnsafeBytes`, which does not carry the type of the error.
                let result = try piece.withUnsafeBufferPointer { (bytes) throws(TLSError) in
                    try session.receive(UnsafeRawBufferPointer(bytes), through: plain) { _ in
                        fatalError("a stranger's bytes were delivered")
                    }
                }
                expect(result == .incomplete || result == .closed, "a stranger was read")
                expect(try session.handshake() == .incomplete, "a stranger's handshake is complete")
                written += session.nextOutput(into: wire)
            }
        } catch {
            expect(!error.description.isEmpty, "an error without a sentence")
        }
        written += session.nextOutput(into: wire)
        expect(written < 65_536, "\(written) bytes for a stranger")
        expect(session.verifiedPeer == nil, "a stranger has an identity")
        expect((session.receivedServerName?.utf8.count ?? 0) <= 255, "a long server name")
    }

    private static func makeContext(_ identity: DeviceIdentity) throws -> TLSContext {
        let material = identity.tlsMaterial
        let tls = try material.certificate.withUnsafeBytes { certificate in
            try material.authorityCertificate.withUnsafeBytes { authority in
                try material.privateKey.withUnsafeBytes { key in
                    try TLSIdentity(certificate: certificate, privateKey: key, accountCA: authority)
                }
            }
        }
        return try TLSContext(identity: tls)
    }

    static func seeds() throws -> [[UInt8]] {
        let client = try TLSSession(
            client: context, serverName: String(repeating: "a", count: 52) + ".baton.invalid",
            expectedPeer: AdvertisementTarget.Fixture.shared.other.id.description)
        _ = try client.handshake()
        let hello = Array(wire[..<client.nextOutput(into: wire)])
        // An alert, a record of another kind, another protocol.
        return [
            [0] + hello, [1] + hello, [50] + hello, [0] + hello.dropLast(20), [0, 21, 3, 3, 0, 2, 2, 40],
            [0, 23, 3, 3, 0, 1, 0], [0] + Array("GET / HTTP/1.1\r\n\r\n".utf8), [0, 22, 3, 1, 0xFF, 0xFF],
        ]
    }
}
