// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import CLinux
import COpenSSL

/// One end of a TLS connection, memory to memory: one SSL, without socket, clock or thread.
///
/// Ciphertext from the network goes in through ``receive(_:)``, and out through ``nextOutput(into:)``. Plaintext goes
/// through ``write(_:)`` and ``read(into:)``. Check ``hasOutput`` after every call, because reading can cause output
/// too. The owner calls ``handshake()`` until it is complete. A client calls it at once, because it sends first.
///
/// **A TLS 1.3 client completes before the server has verified its certificate.** The client's last flight carries its
/// certificate. If the server refuses it, an alert arrives later, which a later ``read(into:)`` throws (`wrongAccount`,
/// `refused`, `certificateRefused`, `noCertificate`, each with ``TLSError/alert``). So a client must not count itself
/// accepted before it has read the server's first byte. A server's completion is final.
///
/// After an error the session is over, but ``hasOutput`` may still be true for the alert. Send it, then close.
///
/// Isolation: not `Sendable`; confined to its owner. Cost: about 50 KiB while idle, bounded by ``TLSLimits``.
package final class TLSSession {
    /// The result of reading.
    package enum ReadResult: Sendable, Hashable {
        /// The number of bytes of plaintext at the front of the buffer.
        case bytes(Int)
        /// No whole record is there; receive more.
        case incomplete
        /// The peer has sent close_notify and sends nothing more. Writing is still allowed.
        case closed
    }

    let pointer: OpaquePointer
    let bio: MemoryBIO
    let context: TLSContext
    let gate: TLSContext.Gate?
    let isServer: Bool
    /// The device id that a client dialled; nil on a server.
    let expectedPeer: String?
    /// The error that a callback found during an SSL call, for the call that OpenSSL then fails.
    var callbackError: TLSError?
    /// The id from the verified leaf, set by the callback that verified it.
    var verifiedPeer: String?
    /// The error that ended this session. Every further call throws it.
    var failure: TLSError?
    var isComplete = false
    var isShutDown = false
    /// The bytes until the sending key is replaced, each record counted as a full one.
    var bytesUntilKeyUpdate: UInt64
    /// The number of times that the sending key was replaced.
    var keyUpdates = 0
    /// The handshake messages that may come before more data does (``TLSLimits/postHandshakeMessages``).
    var postHandshakeMessages: Int
    /// Bytes of data since a handshake message was allowed.
    var dataSinceAllowance = 0

    /// The name in the client's server name extension (RFC 6066), unverified. A server session has it from the
    /// ClientHello on. Nil if there was none, or it was not one ASCII host name.
    package internal(set) var receivedServerName: String?

    /// The gate's result for the client; nil on a client, without a gate, and before.
    package internal(set) var admission: UInt32?

    /// Makes the dialling end. Its first flight is there after the first ``handshake()``.
    ///
    /// - Parameters:
    ///   - client: the settings.
    ///   - serverName: the content of the server name extension, in the clear: the gate's token. 1 to 255 ASCII bytes.
    ///   - expectedPeer: the device id that must answer, whatever the server name is.
    /// - Throws: `invalidName` if a name is not valid in TLS; `library`.
    package convenience init(client: TLSContext, serverName: String, expectedPeer: String) throws(TLSError) {
        guard let device = DeviceID(expectedPeer), device.description == expectedPeer else {
            throw TLSError(.invalidName, "\"\(expectedPeer)\" is not a device id.")
        }
        guard (1...255).contains(serverName.utf8.count), serverName.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw TLSError(.invalidName, "A server name is 1 to 255 printable ASCII characters.")
        }
        try self.init(context: client, gate: nil, isServer: false, expectedPeer: expectedPeer)
        guard shim_SSL_set_server_name(pointer, serverName) == 1 else {
            throw ErrorQueue.libraryFailure("setting the server name")
        }
        SSL_set_hostflags(
            pointer, UInt32(X509_CHECK_FLAG_NO_WILDCARDS) | UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT))
        guard SSL_set1_host(pointer, device.certificateName) == 1 else {
            throw ErrorQueue.libraryFailure("setting the expected device")
        }
        SSL_set_connect_state(pointer)
    }

    /// Makes the accepting end.
    ///
    /// - Parameter gate: replaces the context's gate for this client, for example one that knows the client's address.
    ///   Nil, the default, uses the context's.
    /// - Throws: `library`.
    package convenience init(server: TLSContext, gate: TLSContext.Gate? = nil) throws(TLSError) {
        try self.init(context: server, gate: gate ?? server.gate, isServer: true, expectedPeer: nil)
        bio.isMuted = self.gate != nil
        SSL_set_accept_state(pointer)
    }

    private init(
        context: TLSContext, gate: TLSContext.Gate?, isServer: Bool, expectedPeer: String?
    ) throws(TLSError) {
        ErrorQueue.clear()
        let bio = try MemoryBIO()
        guard let ssl = SSL_new(context.pointer) else {
            BIO_free(bio.pointer)
            throw ErrorQueue.libraryFailure("making a TLS session")
        }
        self.context = context
        self.gate = gate
        self.isServer = isServer
        self.expectedPeer = expectedPeer
        self.bio = bio
        pointer = ssl
        bytesUntilKeyUpdate = context.limits.keyUpdateInterval
        postHandshakeMessages = context.limits.postHandshakeMessages
        SSL_set_bio(ssl, bio.pointer, bio.pointer)  // takes the one reference for both directions
        // Unretained: the callbacks run only inside calls of this object, and deinit frees the SSL.
        SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit {
        SSL_free(pointer)
    }

    // MARK: - Keys for the application

    /// Derives keys that only the two ends of this session know (RFC 8446, section 7.5; SSL_export_keying_material(3)).
    ///
    /// - Parameters:
    ///   - label: the purpose; each has a label of its own.
    ///   - target: is filled completely.
    /// - Throws: `notReady` before the handshake is complete; `library`.
    package func exportKeyingMaterial(
        _ label: String, into target: UnsafeMutableRawBufferPointer
    ) throws(TLSError) {
        if let failure { throw failure }
        guard isComplete else { throw TLSError(.notReady, "There are no keys before the handshake is complete.") }
        ErrorQueue.clear()
        let result = SSL_export_keying_material(
            pointer, target.baseAddress?.assumingMemoryBound(to: UInt8.self), target.count,
            label, label.utf8.count, nil, 0, 0)
        // OpenSSL leaves the secrets of the derivation on the stack.
        baton_wipe_stack()
        guard result == 1 else { throw ErrorQueue.libraryFailure("exporting keys") }
    }

    // MARK: - Handshake

    /// Continues the handshake as far as the received bytes allow. Does nothing when it is complete.
    ///
    /// - Returns: whether it is complete, so that both sides can send; the type's description says what that means for
    ///   a client. Otherwise bytes of the peer are missing: send the output, receive, call again.
    /// - Throws: an error of ``TLSError/Code-swift.enum`` about the peer or the protocol. A *client* learns later
    ///   that the peer refuses it: see the type's description.
    package func handshake() throws(TLSError) -> Bool {
        if let failure { throw failure }
        if isComplete { return true }
        ErrorQueue.clear()
        let result = SSL_do_handshake(pointer)
        guard result == 1 else {
            try throwUnlessInputNeeded(result)
            return false
        }
        try confirm()
        isComplete = true
        return true
    }

    /// Checks a complete handshake again. Each rule was enforced on the way, and none is taken on trust.
    private func confirm() throws(TLSError) {
        guard SSL_version(pointer) == TLS1_3_VERSION else {
            throw fail(TLSError(.protocolViolation, "The peer does not speak TLS 1.3."))
        }
        guard negotiatedProtocol == applicationProtocol else {
            throw fail(TLSError(.protocolViolation, "The peer does not speak \(applicationProtocol)."))
        }
        guard verifiedPeer != nil, SSL_get_verify_result(pointer) == Int(X509_V_OK) else {
            throw fail(TLSError(.noCertificate, "The peer presented no certificate."))
        }
    }

    // MARK: - Failure

    /// Ends the session and returns the error.
    func fail(_ error: TLSError) -> TLSError {
        failure = error
        return error
    }

    /// Handles an SSL call that did not succeed: returns if it only needs more bytes, and throws if it failed.
    func throwUnlessInputNeeded(_ result: Int32) throws(TLSError) {
        switch SSL_get_error(pointer, result) {
        case SSL_ERROR_WANT_READ:
            return
        case SSL_ERROR_ZERO_RETURN:
            // The peer sent close_notify during the handshake, or when only data may come.
            throw fail(TLSError(.truncated, "The peer closed the connection during the handshake."))
        default:
            let cause = ErrorQueue.sessionFailure()
            defer { callbackError = nil }
            throw fail(callbackError ?? cause)
        }
    }
}
