// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// Callbacks of OpenSSL during a call. Each SSL's data is its session.
extension TLSSession {
    private static func session(of ssl: OpaquePointer?) -> TLSSession? {
        guard let ssl, let data = SSL_get_ex_data(ssl, 0) else { return nil }
        return Unmanaged<TLSSession>.fromOpaque(data).takeUnretainedValue()
    }

    /// Checks a ClientHello first: asks the gate, keeps the server name and demands ALPN.
    ///
    /// OpenSSL calls its ALPN callback only if the client sent the extension, so a client without one is refused here.
    /// Nothing is verified yet.
    static func checkClientHello(_ ssl: OpaquePointer?, _ alert: UnsafeMutablePointer<Int32>?) -> Int32 {
        guard let session = session(of: ssl) else { return SSL_CLIENT_HELLO_ERROR }
        let serverName = session.rawExtension(TLSEXT_TYPE_server_name).flatMap(hostName)
        guard session.admit(serverName) else {
            session.callbackError = TLSError(.notAdmitted, "The peer did not show that it belongs to the account.")
            return SSL_CLIENT_HELLO_ERROR
        }
        session.receivedServerName = serverName
        guard session.rawExtension(UInt32(TLSEXT_TYPE_application_layer_protocol_negotiation)) != nil else {
            session.callbackError = TLSError(.protocolViolation, "The peer does not speak \(applicationProtocol).")
            alert?.pointee = SSL_AD_NO_APPLICATION_PROTOCOL
            return SSL_CLIENT_HELLO_ERROR
        }
        return SSL_CLIENT_HELLO_SUCCESS
    }

    /// Asks the gate, once. After a HelloRetryRequest the same client repeats its name (RFC 8446, section 4.1.2), and a
    /// token is valid for one connection.
    private func admit(_ serverName: String?) -> Bool {
        guard let gate else { return true }
        if admission != nil { return serverName == receivedServerName }
        admission = gate(serverName)
        bio.isMuted = admission == nil
        return admission != nil
    }

    /// Counts handshake messages that come after the handshake.
    static func countHandshakeMessage(_ ssl: OpaquePointer?) {
        guard let session = session(of: ssl), session.isComplete else { return }
        guard session.postHandshakeMessages > 0 else {
            session.callbackError = TLSError(
                .protocolViolation, "The peer sends more messages of the handshake than records of data.")
            // OpenSSL would read on until data comes, whatever this callback returns, so the input is stopped.
            session.bio.isStopped = true
            return
        }
        session.postHandshakeMessages -= 1
    }

    private func rawExtension(_ type: some BinaryInteger) -> UnsafeBufferPointer<UInt8>? {
        var bytes: UnsafePointer<UInt8>?
        var count = 0
        guard SSL_client_hello_get0_ext(pointer, UInt32(type), &bytes, &count) == 1 else { return nil }
        return UnsafeBufferPointer(start: bytes, count: count)
    }

    /// The only host name of a server name extension: u16 length of the list, u8 type 0, u16 length, name (RFC 6066,
    /// section 3).
    private static func hostName(in bytes: UnsafeBufferPointer<UInt8>) -> String? {
        guard bytes.count > 5, Int(bytes[0]) << 8 | Int(bytes[1]) == bytes.count - 2, bytes[2] == 0,
            Int(bytes[3]) << 8 | Int(bytes[4]) == bytes.count - 5, bytes.dropFirst(5).allSatisfy({ $0 < 0x80 })
        else { return nil }
        return String(decoding: bytes.dropFirst(5), as: UTF8.self)
    }

    /// Verifies the peer's chain and leaf, in place of OpenSSL's own verification, which it calls.
    static func verifyCertificate(_ store: OpaquePointer?) -> Int32 {
        guard let store,
            let ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()),
            let session = session(of: OpaquePointer(ssl))
        else { return 0 }
        do throws(TLSError) {
            // The server has selected a protocol by now. A client sends its certificate only to a peer that speaks
            // Baton's.
            guard session.isServer || session.negotiatedProtocol == applicationProtocol else {
                throw TLSError(.protocolViolation, "The peer does not speak \(applicationProtocol).")
            }
            session.verifiedPeer = try session.context.verifyPeer(store, expectedPeer: session.expectedPeer)
            return 1
        } catch {
            session.callbackError = error
            X509_STORE_CTX_set_error(store, error.verification)
            return 0
        }
    }
}

/// Properties of the other end.
extension TLSSession {
    /// The peer's device id, from its verified certificate only. Nil until the handshake is complete.
    package var peerDeviceID: String? {
        isComplete ? verifiedPeer : nil
    }

    /// The negotiated application protocol (RFC 7301); nil before.
    package var negotiatedProtocol: String? {
        var bytes: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(pointer, &bytes, &count)
        guard let bytes, count > 0 else { return nil }
        return String(decoding: UnsafeBufferPointer(start: bytes, count: Int(count)), as: UTF8.self)
    }
}
