// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import COpenSSL

@testable import BatonTLS

/// One end of a TLS connection in memory: a Baton session, or OpenSSL with other settings.
protocol Endpoint: AnyObject {
    /// Continues as far as the bytes allow. Returns whether the handshake is complete.
    func advance() throws -> Bool
    func takeOutput(_ most: Int) -> [UInt8]
    func give(_ bytes: [UInt8]) throws
}

extension TLSSession: Endpoint {
    func advance() throws -> Bool {
        try handshake()
    }

    func takeOutput(_ most: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: most) { buffer, count in
            count = nextOutput(into: UnsafeMutableRawBufferPointer(buffer))
        }
    }

    func give(_ bytes: [UInt8]) throws {
        try bytes.withUnsafeBytes { try receive($0) }
    }

    func write(_ bytes: [UInt8]) throws {
        try bytes.withUnsafeBytes { try write($0) }
    }

    /// Offers these key exchanges only, as an older library does.
    func offerOnly(_ groups: String) {
        // SSL_set1_groups_list is a macro over this.
        let result = groups.withCString {
            SSL_ctrl(pointer, SSL_CTRL_SET_GROUPS_LIST, 0, UnsafeMutableRawPointer(mutating: $0))
        }
        precondition(result == 1, "the library has \(groups)")
    }

    /// All available plaintext, and whether the stream is incomplete or closed.
    func readAll(piece: Int = 20000) throws(TLSError) -> (bytes: [UInt8], end: ReadResult) {
        var all: [UInt8] = []
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: piece, alignment: 16)
        defer { buffer.deallocate() }
        while true {
            let result = try read(into: buffer)
            guard case .bytes(let count) = result else { return (all, result) }
            all.append(contentsOf: buffer.prefix(count))
        }
    }
}

/// Moves bytes between two ends until neither has more. Returns the error of each.
@discardableResult
func converse(
    _ one: some Endpoint, _ other: some Endpoint, piece: Int = 1 << 16
) -> (one: (any Error)?, other: (any Error)?) {
    var errors: (one: (any Error)?, other: (any Error)?) = (nil, nil)
    var isMoving = true
    while isMoving {
        isMoving = false
        for _ in 0..<2 {
            do { _ = try one.advance() } catch { errors.one = errors.one ?? error }
            do { _ = try other.advance() } catch { errors.other = errors.other ?? error }
            let there = one.takeOutput(piece)
            if !there.isEmpty {
                isMoving = true
                do { try other.give(there) } catch { errors.other = errors.other ?? error }
            }
            let back = other.takeOutput(piece)
            if !back.isEmpty {
                isMoving = true
                do { try one.give(back) } catch { errors.one = errors.one ?? error }
            }
        }
    }
    return errors
}

/// A client and a server of one account, in memory.
struct SessionPair {
    let client: TLSSession
    let server: TLSSession

    /// Two new devices of an account.
    init(limits: TLSLimits = TLSLimits(), clientKey: KeyKind = .ed25519, serverKey: KeyKind = .ed25519) throws {
        let account = try TestAuthority()
        try self.init(
            client: try account.device(clientKey).context(limits: limits),
            server: try account.device(serverKey).context(limits: limits))
    }

    init(client: TLSContext, server: TLSContext, serverName: String = "token.baton.invalid") throws {
        self.client = try TLSSession(client: client, serverName: serverName, expectedPeer: server.deviceID)
        self.server = try TLSSession(server: server)
    }

    /// Completes the handshake.
    func connected() throws -> SessionPair {
        let errors = converse(client, server)
        if let error = errors.one ?? errors.other { throw error }
        return self
    }
}

/// A TLS end without Baton's code: OpenSSL with memory BIOs and settings of the test.
final class ForeignPeer: Endpoint {
    struct Settings {
        var isServer = false
        var device: TestDevice?
        /// The list form of RFC 7301; empty for none.
        var protocols: [UInt8] = TLSContext.protocolList
        var version = TLS1_3_VERSION
        var serverName: String?
    }

    let ssl: OpaquePointer
    private let context: OpaquePointer
    private let input: OpaquePointer
    private let output: OpaquePointer

    init(_ settings: Settings) throws {
        guard let context = SSL_CTX_new(TLS_method()), let ssl = Self.session(context, settings),
            let input = BIO_new(BIO_s_mem()), let output = BIO_new(BIO_s_mem())
        else { throw MintingFailed(what: "foreign peer") }
        (self.context, self.ssl, self.input, self.output) = (context, ssl, input, output)
        SSL_set_bio(ssl, input, output)
        settings.isServer ? SSL_set_accept_state(ssl) : SSL_set_connect_state(ssl)
    }

    private static func session(_ context: OpaquePointer, _ settings: Settings) -> OpaquePointer? {
        SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(settings.version), nil)
        SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(settings.version), nil)
        if let device = settings.device {
            SSL_CTX_use_certificate(context, device.certificate.pointer)
            SSL_CTX_use_PrivateKey(context, device.key.pointer)
        }
        if settings.isServer {
            if !settings.protocols.isEmpty {
                // Selects whatever the client offers. Another test covers servers that select a wrong protocol.
                SSL_CTX_set_alpn_select_cb(
                    context,
                    { _, out, length, offered, _, _ in
                        guard let offered else { return SSL_TLSEXT_ERR_NOACK }
                        out?.pointee = offered + 1
                        length?.pointee = offered.pointee
                        return SSL_TLSEXT_ERR_OK
                    }, nil)
            }
            SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
            SSL_CTX_set_cert_verify_callback(context, { _, _ in 1 }, nil)
        }
        guard let ssl = SSL_new(context) else { return nil }
        if !settings.isServer, !settings.protocols.isEmpty {
            SSL_set_alpn_protos(ssl, settings.protocols, UInt32(settings.protocols.count))
        }
        if let name = settings.serverName { _ = shim_SSL_set_server_name(ssl, name) }
        return ssl
    }

    deinit {
        SSL_free(ssl)
        SSL_CTX_free(context)
    }

    /// The alert that this end has received, from OpenSSL's queue; 0 for none.
    private(set) var receivedAlert: UInt8 = 0

    func advance() throws -> Bool {
        ERR_clear_error()
        // Reading also continues the handshake, and sees messages after it.
        var byte: UInt8 = 0
        let result = SSL_is_init_finished(ssl) == 1 ? SSL_read(ssl, &byte, 1) : SSL_do_handshake(ssl)
        if result <= 0, SSL_get_error(ssl, result) == SSL_ERROR_SSL {
            let reason = shim_ERR_reason(ERR_get_error())
            if reason > SSL_AD_REASON_OFFSET { receivedAlert = UInt8(clamping: reason - SSL_AD_REASON_OFFSET) }
            throw MintingFailed(what: "foreign peer failed with \(reason)")
        }
        return SSL_is_init_finished(ssl) == 1
    }

    func takeOutput(_ most: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: most)
        let count = BIO_read(output, &bytes, Int32(most))
        return Array(bytes.prefix(max(0, Int(count))))
    }

    func give(_ bytes: [UInt8]) throws {
        _ = BIO_write(input, bytes, Int32(bytes.count))
    }
}

extension Error {
    /// The code of a TLS error.
    var tlsCode: TLSError.Code? { (self as? TLSError)?.code }
    /// The peer's alert of a TLS error.
    var tlsAlert: UInt8? { (self as? TLSError)?.alert }
}
