// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import COpenSSL
import Glibc

/// A web site on a socket of this machine, with a certificate of its own. It answers every request with the same given
/// bytes, and hangs up.
final class LocalSite: @unchecked Sendable {  // reason: pointers and descriptor are never changed after `init`
    /// What is answered.
    struct Answer: Sendable {
        /// A record of TLS each.
        var pieces: [[UInt8]] = []
        /// Whether the connection ends without an end of TLS.
        var isCut = false
    }

    /// The certificate, which is its own authority.
    let pem: String
    /// Where it listens, as `127.0.0.1:8443`.
    let address: String
    private let context: OpaquePointer
    private let listener: Int32
    private let thread: BlockingExecutor
    private let answer = Lock(Answer())
    private let requests = Lock<[[UInt8]]>([])

    /// Begins to serve.
    init(host: String) throws {
        signal(SIGPIPE, SIG_IGN)
        guard let key = Self.makeKey(), let certificate = Self.certify(key, for: host),
            let context = SSL_CTX_new(TLS_server_method()), SSL_CTX_use_certificate(context, certificate) == 1,
            SSL_CTX_use_PrivateKey(context, key) == 1, let memory = BIO_new(BIO_s_mem()),
            PEM_write_bio_X509(memory, certificate) == 1
        else { throw FuzzError("OpenSSL makes no site") }
        // Nobody comes twice.
        SSL_CTX_set_num_tickets(context, 0)
        self.context = context
        var text = [UInt8](repeating: 0, count: 4096)
        text.removeLast(text.count - Int(max(0, BIO_read(memory, &text, 4096))))
        pem = String(decoding: text, as: UTF8.self)
        BIO_free(memory)

        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let number = listener
        let isBound = withUnsafeMutablePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, length) == 0 && listen(number, 16) == 0 && getsockname(number, $0, &length) == 0
            }
        }
        guard isBound else { throw FuzzError("no site can listen") }
        address = "127.0.0.1:\(UInt16(bigEndian: name.sin_port))"
        thread = try BlockingExecutor(name: "site")
        thread.submit { [self] in serve() }
    }

    /// Answers so from now on, and forgets what was asked before.
    func set(_ answer: Answer) {
        self.answer.withLock { $0 = answer }
        requests.withLock { $0 = [] }
    }

    /// The requests since then.
    var asked: [[UInt8]] { requests.withLock { $0 } }

    private func serve() {
        while true {
            let connection = accept(listener, nil, nil)
            guard connection >= 0 else { continue }
            if let session = SSL_new(context) {
                if SSL_set_fd(session, connection) == 1, SSL_accept(session) == 1 { serve(session) }
                ERR_clear_error()
                SSL_free(session)
            }
            close(connection)
        }
    }

    private func serve(_ session: OpaquePointer) {
        var request: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 4096)
        while request.suffix(4) != [13, 10, 13, 10] {
            let count = SSL_read(session, &room, Int32(room.count))
            guard count > 0 else { return }
            request += room.prefix(Int(count))
        }
        requests.withLock { $0.append(request) }
        let answer = answer.withLock { $0 }
        for piece in answer.pieces {
            guard SSL_write(session, piece, Int32(piece.count)) > 0 else { return }
        }
        if !answer.isCut { SSL_shutdown(session) }
    }

    private static func makeKey() -> OpaquePointer? {
        var key: OpaquePointer?
        let context = EVP_PKEY_CTX_new_id(NID_ED25519, nil)
        defer { EVP_PKEY_CTX_free(context) }
        guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_keygen(context, &key) == 1 else { return nil }
        return key
    }

    private static func certify(_ key: OpaquePointer, for host: String) -> OpaquePointer? {
        guard let certificate = X509_new(), let name = X509_get_subject_name(certificate),
            let names = X509V3_EXT_conf_nid(nil, nil, NID_subject_alt_name, "DNS:\(host)")
        else { return nil }
        let day = 24 * 60 * 60
        guard X509_set_version(certificate, 2) == 1, ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) == 1,
            X509_NAME_add_entry_by_txt(name, "CN", 0x1001, host, -1, -1, 0) == 1,
            X509_set_issuer_name(certificate, name) == 1,
            X509_gmtime_adj(X509_getm_notBefore(certificate), -day) != nil,
            X509_gmtime_adj(X509_getm_notAfter(certificate), 30 * day) != nil,
            X509_set_pubkey(certificate, key) == 1, X509_add_ext(certificate, names, -1) == 1,
            X509_sign(certificate, key, nil) > 0
        else { return nil }
        return certificate
    }
}
