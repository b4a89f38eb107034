// SPDX-License-Identifier: Apache-2.0

import BatonTLS
import BatonTransport

/// TLS between two nodes, as the channel of a connection.
final class TLSChannel: Channel {
    /// Plaintext is encrypted in pieces of four full records, and decrypted here where nobody wants it elsewhere.
    private static let scratchSize = 4 * 16_384

    private let session: TLSSession
    private let plain = UnsafeMutableRawBufferPointer.allocate(byteCount: scratchSize, alignment: 64)
    private let decrypted = UnsafeMutableRawBufferPointer.allocate(byteCount: scratchSize, alignment: 64)
    private let isClient: Bool

    init(_ session: TLSSession, isClient: Bool) {
        self.session = session
        self.isClient = isClient
    }

    deinit {
        plain.deallocate()
        decrypted.deallocate()
    }

    var peer: PeerIdentity? { session.peerDeviceID.map(PeerIdentity.device) }

    func start() throws(TransportError) {
        guard isClient else { return }
        do {
            _ = try session.handshake()
        } catch {
            throw TransportError(tlsError: error)
        }
    }

    func decode(
        _ wire: UnsafeRawBufferPointer,
        into room: (UnsafeMutableRawBufferPointer) -> UnsafeMutableRawBufferPointer,
        deliver: (UnsafeRawBufferPointer) throws(TransportError) -> Void
    ) throws(TransportError) {
        var failure: TransportError?
        let result: TLSSession.ReadResult
        do {
            result = try session.receive(
                wire, into: { room(decrypted) },
                deliver: { bytes in
                    do throws(TransportError) {
                        try deliver(bytes)
                        return true
                    } catch {
                        failure = error
                        return false
                    }
                })
        } catch {
            throw TransportError(tlsError: error)
        }
        if let failure { throw failure }
        switch result {
        case .bytes, .incomplete:
            return
        case .closed:
            throw TransportError(.connectionLost, "the other side closed the connection")
        }
    }

    func encode(
        into wire: UnsafeMutableRawBufferPointer,
        from next: (UnsafeMutableRawBufferPointer) -> Int
    ) throws(TransportError) -> Int {
        var filled = session.nextOutput(into: wire)
        do {
            guard try session.handshake() else { return filled }
            while filled < wire.count, !session.hasOutput {
                let count = next(plain)
                guard count > 0 else { break }
                try session.write(
                    UnsafeRawBufferPointer(rebasing: plain[..<count]),
                    into: UnsafeMutableRawBufferPointer(rebasing: wire[filled...]), count: &filled)
            }
        } catch {
            // An alert that tells the peer why still leaves.
            filled += session.nextOutput(into: UnsafeMutableRawBufferPointer(rebasing: wire[filled...]))
            if filled == 0 { throw TransportError(tlsError: error) }
        }
        return filled
    }

    func exportKeyingMaterial(
        _ label: String, into target: UnsafeMutableRawBufferPointer
    ) throws(TransportError) {
        do {
            try session.exportKeyingMaterial(label, into: target)
        } catch {
            throw TransportError(tlsError: error)
        }
    }

    func finish() {
        session.shutdown()
    }
}

extension TransportError {
    /// The failure of a connection whose TLS failed.
    init(tlsError error: TLSError) {
        switch error.code {
        case .wrongAccount:
            self.init(.refused, "the other device is of another account: compare `baton account show` on both")
        case .refused:
            self.init(
                .refused,
                error.alert == nil
                    ? Cause.revoked.sentence("the device")
                    : "this device was revoked from the account, and its other devices serve it no more")
        case .wrongPeer:
            self.init(.refused, "another device than the one that was dialled answered")
        case .ownIdentity:
            self.init(.refused, "this device reached itself")
        case .identityMismatch, .noCertificate, .certificateRefused:
            self.init(.refused, "the certificate was refused: \(error)")
        case .notAdmitted:
            self.init(
                .refused,
                "the other side did not show that it is of this account: compare `baton account show` on both")
        case .protocolViolation:
            self.init(.protocolViolation, "the other side does not speak Baton's protocol: \(error)")
        case .truncated:
            self.init(.connectionLost, "the connection broke")
        default:
            self.init(.connectionLost, "\(error)")
        }
    }
}
