// SPDX-License-Identifier: Apache-2.0

import CLinux
import COpenSSL

/// One SSL: one end of a TLS connection, memory to memory. It knows no socket, no clock and no thread.
///
/// Ciphertext from the network goes in through ``receive(_:)``, and out through ``nextOutput(into:)`` or
/// ``sendOutput(_:)``; plaintext through ``write(_:)`` and ``read(into:)``. After every call look at ``hasOutput``:
/// also reading can make bytes to send. The owner drives ``handshake()`` until it is complete, a client at once (it
/// speaks first).
///
/// **A TLS 1.3 client completes before the server has judged its certificate.** The client's last flight carries its
/// certificate, and the server's verdict arrives later, if it is a refusal, as an alert that a later ``read(into:)``
/// throws (`wrongAccount`, `refused`, `certificateRefused`, `noCertificate`, each with ``TLSError/alert`` set). So a
/// client must not count itself accepted before it has read a first byte of the server. A server's completion is final.
///
/// After an error the session is over, but ``hasOutput`` may still be true: the alert for the peer. Send it, then
/// close.
///
/// Isolation: not `Sendable`; confined to whoever made it. Cost: about 50 KiB while idle, bounded by ``TLSLimits``.
package final class TLSSession {
    /// How far the handshake is.
    package enum HandshakeProgress: Sendable, Hashable {
        /// Both sides can send; see above for what that means for a client.
        case complete
        /// Bytes of the peer are missing: send what there is, receive, call again.
        case incomplete
    }

    /// What reading brought.
    package enum ReadResult: Sendable, Hashable {
        /// So many bytes of plaintext were written to the front of the buffer.
        case bytes(Int)
        /// No whole record is there; receive more.
        case incomplete
        /// The peer said close_notify: it will send nothing more. Writing is still allowed.
        case closed
    }

    let pointer: OpaquePointer
    let bio: MemoryBIO
    let context: TLSContext
    let gate: TLSContext.Gate?
    let isServer: Bool
    /// The device id that a client dialled; nil on a server.
    let expectedPeer: String?
    /// What the callbacks decided in the middle of an SSL call; taken by the call that OpenSSL then fails.
    var verdict: TLSError?
    /// The id from the verified leaf, set by the callback that verified it.
    var verifiedPeer: String?
    /// The error that ended this session; thrown again by every further call.
    var failure: TLSError?
    var isComplete = false
    var isShutDown = false
    /// Records counted as full ones until the sending key is replaced.
    var bytesUntilKeyUpdate: UInt64
    /// How often the sending key was replaced.
    var keyUpdates = 0
    /// How many messages of the handshake may come before more data does (``TLSLimits/lateMessages``).
    var lateMessages: Int
    /// Bytes of data that came since one was given back.
    var dataOfLateMessage = 0

    /// The name that the client sent in the server name extension (RFC 6066), as it came: a server session has it from
    /// the ClientHello on, before anything of it is verified. Nil when there was none, or it was not one ASCII host
    /// name.
    package internal(set) var receivedServerName: String?

    /// What the context's gate admitted the client by; nil on a client, without a gate, and before.
    package internal(set) var admission: UInt32?

    /// Makes the dialling end. Its first flight is there after the first ``handshake()``.
    ///
    /// - Parameters:
    ///   - client: The settings.
    ///   - serverName: What goes into the server name extension, in the clear: the gate's token. 1 to 255 ASCII bytes.
    ///   - expectedPeer: The device id that must answer, whatever the server name says.
    /// - Throws: `invalidName` when one of the names cannot stand in TLS; `library`.
    package convenience init(client: TLSContext, serverName: String, expectedPeer: String) throws(TLSError) {
        guard DeviceName.isDeviceID(expectedPeer) else {
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
        if client.checks.contains(.expectedPeer) {
            guard SSL_set1_host(pointer, DeviceName.host(of: expectedPeer)) == 1 else {
                throw ErrorQueue.libraryFailure("setting the expected device")
            }
        }
        SSL_set_connect_state(pointer)
    }

    /// Makes the accepting end.
    ///
    /// - Parameter gate: judges this client in place of the context's gate, such as one that knows where he is; nil,
    ///   the default, leaves it to that one.
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
        let bio = try MemoryBIO(limits: context.limits)
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
        lateMessages = context.limits.lateMessages
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
    ///   - label: what they are for; each purpose has its own.
    ///   - target: gets as many bytes as it has room for.
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
        // What they are derived from it leaves there.
        baton_wipe_stack()
        guard result == 1 else { throw ErrorQueue.libraryFailure("exporting keys") }
    }

    // MARK: - Handshake

    /// Takes the handshake as far as the received bytes allow. Calling it again when it is complete does nothing.
    ///
    /// - Throws: What ``TLSError/Code-swift.struct`` tells of peers and protocol. The peer's refusal of a *client*
    ///   comes later, see the type's description.
    package func handshake() throws(TLSError) -> HandshakeProgress {
        if let failure { throw failure }
        if isComplete { return .complete }
        ErrorQueue.clear()
        let result = SSL_do_handshake(pointer)
        guard result == 1 else {
            try settle(result)
            return .incomplete
        }
        try confirm()
        isComplete = true
        return .complete
    }

    /// The last look before a session counts as complete: each of these was enforced on the way, and none may be taken
    /// on trust.
    private func confirm() throws(TLSError) {
        guard SSL_version(pointer) == TLS1_3_VERSION else {
            throw fail(TLSError(.protocolVersion, "The peer does not speak TLS 1.3."))
        }
        guard negotiatedProtocol == applicationProtocol else {
            throw fail(TLSError(.applicationProtocol, "The peer does not speak \(applicationProtocol)."))
        }
        let isJudged = verifiedPeer != nil && SSL_get_verify_result(pointer) == Int(X509_V_OK)
        guard isJudged || !context.checks.contains(.account) else {
            throw fail(TLSError(.noCertificate, "The peer presented no certificate."))
        }
    }

    // MARK: - Failure

    /// Ends the session and gives the error back.
    func fail(_ error: TLSError) -> TLSError {
        failure = error
        return error
    }

    /// Sorts out an SSL call that did not succeed: returns when it only wants more bytes, throws when it failed.
    func settle(_ result: Int32) throws(TLSError) {
        switch SSL_get_error(pointer, result) {
        case SSL_ERROR_WANT_READ:
            return
        case SSL_ERROR_ZERO_RETURN:
            // close_notify in the handshake, or where only data may come.
            throw fail(TLSError(.truncated, "The peer closed the connection during the handshake."))
        default:
            let cause = ErrorQueue.sessionFailure()
            defer { verdict = nil }
            throw fail(verdict ?? cause)
        }
    }
}
