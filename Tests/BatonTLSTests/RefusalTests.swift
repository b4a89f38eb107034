// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import COpenSSL
import Testing

@testable import BatonTLS

/// Refused peers: the error of the refusing side, and the error that the other side gets by an alert.
@Suite struct RefusalTests {
    let account: TestAuthority
    let server: TLSContext

    init() throws {
        account = try TestAuthority()
        server = try account.device().context()
    }

    /// Two Baton sessions: the server's error, and the client's, which comes by an alert.
    private func meet(
        client: TLSContext, server: TLSContext, expecting: String? = nil
    ) throws -> (client: (any Error)?, server: (any Error)?) {
        let one = try TLSSession(
            client: client, serverName: "x.baton.invalid", expectedPeer: expecting ?? server.deviceID)
        let other = try TLSSession(server: server)
        var errors = converse(one, other)
        if errors.one == nil {
            // The client completed before the server's verification, so the alert comes when it reads.
            do { _ = try one.readAll() } catch { errors.one = error }
        }
        return (errors.one, errors.other)
    }

    /// A foreign peer against a Baton session: the session's error, and the alert that the peer got.
    private func meet(foreign settings: ForeignPeer.Settings) throws -> (error: (any Error)?, alert: UInt8) {
        let foreign = try ForeignPeer(settings)
        if settings.isServer {
            let expected = settings.device?.deviceID ?? server.deviceID
            let client = try TLSSession(client: server, serverName: "x.baton.invalid", expectedPeer: expected)
            let errors = converse(client, foreign)
            return (errors.one, foreign.receivedAlert)
        }
        let errors = converse(try TLSSession(server: server), foreign)
        return (errors.one, foreign.receivedAlert)
    }

    @Test func clientOfAnotherAccount() throws {
        // A client that trusts the server's account, with a certificate of another one.
        let stranger = try TestAuthority().device()
        let (error, alert) = try meet(foreign: .init(device: stranger))
        #expect(error?.tlsCode == .wrongAccount)
        #expect(error?.tlsAlert == nil)
        #expect(alert == TLSAlert.unknownCA)
    }

    @Test func serverOfAnotherAccount() throws {
        let stranger = try TestAuthority().device().context()
        let (client, peer) = try meet(client: server, server: stranger)
        #expect(client?.tlsCode == .wrongAccount)
        #expect(client?.tlsAlert == nil)
        #expect(peer?.tlsCode == .wrongAccount)
        #expect(peer?.tlsAlert == TLSAlert.unknownCA)
    }

    @Test func serverOfAnotherAccountUnderTheNameOfOurs() throws {
        // Signed by the wrong account, but it names the device that was dialled.
        let strangers = try TestAuthority()
        let ours = try account.device()
        let key = try TestKey(.ed25519)
        let certificate = try strangers.issue(
            to: key, LeafProfile(names: "DNS:" + ours.deviceID + DeviceID.certificateNameSuffix))
        let client = try TLSSession(client: server, serverName: "x.baton.invalid", expectedPeer: ours.deviceID)
        let liar = TestDevice(key: key, certificate: certificate, authority: strangers)
        let foreign = try ForeignPeer(.init(isServer: true, device: liar))
        #expect(converse(client, foreign).one?.tlsCode == .wrongAccount)
    }

    @Test func selfSignedClient() throws {
        let key = try TestKey(.ed25519)
        let authority = try TestAuthority()
        let device = TestDevice(key: authority.key, certificate: authority.certificate, authority: authority)
        #expect(try meet(foreign: .init(device: device)).error?.tlsCode == .wrongAccount)
        _ = key
    }

    @Test func theAccountItselfIsNoDevice() throws {
        let device = TestDevice(key: account.key, certificate: account.certificate, authority: account)
        let (error, _) = try meet(foreign: .init(device: device))
        #expect(error?.tlsCode == .certificateRefused)
    }

    @Test func clientWithoutCertificate() throws {
        let (error, alert) = try meet(foreign: .init())
        #expect(error?.tlsCode == .noCertificate)
        #expect(alert == TLSAlert.certificateRequired)
    }

    @Test func clientLearnsLaterThatItIsRefused() throws {
        let revoked = try account.device()
        let strict = try account.device().context { $0 == revoked.deviceID }
        let client = try TLSSession(client: revoked.context(), serverName: "x", expectedPeer: strict.deviceID)
        let peer = try TLSSession(server: strict)
        _ = try client.handshake()
        try peer.give(client.takeOutput(1 << 16))
        _ = try peer.handshake()
        try client.give(peer.takeOutput(1 << 16))
        // The client is complete and can even write. Only then does the server verify it.
        #expect(try client.handshake())
        try client.write([1, 2, 3])
        try peer.give(client.takeOutput(1 << 16))
        let refusal = #expect(throws: TLSError.self) { try peer.handshake() }
        #expect(refusal?.code == .refused)
        #expect(refusal?.message.contains(revoked.deviceID) == true)
        #expect(peer.hasOutput)
        #expect(peer.peerDeviceID == nil)
        try client.give(peer.takeOutput(1 << 16))
        let learned = #expect(throws: TLSError.self) { try client.readAll() }
        #expect(learned?.code == .refused)
        #expect(learned?.alert == TLSAlert.certificateRevoked)
        // Both sessions are over for good.
        #expect(throws: try #require(learned)) { try client.write([1]) }
        #expect(throws: try #require(refusal)) { try peer.handshake() }
    }

    @Test func revokedServer() throws {
        let revoked = try account.device().context()
        let client = try account.device().context { $0 == revoked.deviceID }
        let errors = try meet(client: client, server: revoked)
        #expect(errors.client?.tlsCode == .refused)
        #expect(errors.server?.tlsCode == .refused)
        #expect(errors.server?.tlsAlert == TLSAlert.certificateRevoked)
    }

    @Test func ownIdentity() throws {
        let device = try account.device()
        let errors = try meet(client: device.context(), server: device.context())
        #expect(errors.client?.tlsCode == .ownIdentity)
        #expect(errors.server?.tlsCode == .certificateRefused)
        // It is also refused if another device was dialled, and if the client has this device's identity.
        let other = try account.device()
        #expect(
            try meet(client: device.context(), server: device.context(), expecting: other.deviceID).client?.tlsCode
                == .ownIdentity)
        let double = try ForeignPeer(.init(device: device))
        #expect(converse(try TLSSession(server: device.context()), double).one?.tlsCode == .ownIdentity)
        #expect(double.receivedAlert == TLSAlert.badCertificate)
    }

    @Test func anotherDeviceThanTheOneDialled() throws {
        let errors = try meet(
            client: account.device().context(), server: server, expecting: account.device().deviceID)
        #expect(errors.client?.tlsCode == .wrongPeer)
        #expect(errors.server?.tlsCode == .certificateRefused)
        #expect(errors.server?.tlsAlert == TLSAlert.badCertificate)
    }

    @Test(arguments: [
        "DNS:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.device.baton.invalid", "DNS:*.device.baton.invalid", "DNS:example.org",
        "IP:127.0.0.1", "email:a@example.org", "",
    ])
    func clientWhoseNameIsNotItsKeys(names: String) throws {
        let device = try account.device(.ed25519, LeafProfile(names: names))
        let (error, alert) = try meet(foreign: .init(device: device))
        #expect(error?.tlsCode == .identityMismatch)
        #expect(alert == TLSAlert.badCertificate)
        #expect(throws: TLSError.self) { try device.identity() }
    }

    @Test func serverThatNamesTheDialledDeviceAndNotItsKey() throws {
        let ours = try account.device()
        let key = try TestKey(.ed25519)
        let certificate = try account.issue(
            to: key, LeafProfile(names: "DNS:" + ours.deviceID + DeviceID.certificateNameSuffix))
        let client = try TLSSession(client: server, serverName: "x", expectedPeer: ours.deviceID)
        let foreign = try ForeignPeer(
            .init(isServer: true, device: TestDevice(key: key, certificate: certificate, authority: account)))
        #expect(converse(client, foreign).one?.tlsCode == .identityMismatch)
        #expect(foreign.receivedAlert == TLSAlert.badCertificate)
    }

    @Test func twoNames() throws {
        let key = try TestKey(.ed25519)
        let own = "DNS:" + key.deviceID + DeviceID.certificateNameSuffix
        for names in ["\(own),DNS:example.org", "DNS:example.org,\(own)", "\(own),\(own)", "\(own),IP:127.0.0.1"] {
            let certificate = try account.issue(to: key, LeafProfile(names: names))
            let device = TestDevice(key: key, certificate: certificate, authority: account)
            #expect(try meet(foreign: .init(device: device)).error?.tlsCode == .identityMismatch)
            #expect(try meet(foreign: .init(isServer: true, device: device)).error?.tlsCode == .identityMismatch)
        }
    }

    @Test(arguments: [KeyKind.rsa, .p384])
    func keysOfAnotherKind(kind: KeyKind) throws {
        let device = try account.device(kind)
        let asServer = try meet(foreign: .init(isServer: true, device: device))
        #expect(asServer.error?.tlsCode == .protocolViolation)
        // A client has no key that the server accepts, and sends no certificate.
        let asClient = try meet(foreign: .init(device: device))
        #expect(asClient.error?.tlsCode == .noCertificate)
        let error = #expect(throws: TLSError.self) { try device.identity() }
        #expect(error?.tlsCode == .identityMismatch)
    }

    @Test func certificatesForAnotherPurpose() throws {
        for (usages, isServer) in [("serverAuth", false), ("clientAuth", true), ("codeSigning", false)] {
            let device = try account.device(.ed25519, LeafProfile(usages: usages))
            let (error, alert) = try meet(foreign: .init(isServer: isServer, device: device))
            #expect(error?.tlsCode == .certificateRefused)
            #expect(alert == TLSAlert.unsupportedCertificate)
        }
    }

    @Test("A leaf without usages, or one that is a CA, is refused")
    func certificatesBesideTheProfile() throws {
        let profiles = [
            LeafProfile(usages: nil), LeafProfile(keyUsage: nil), LeafProfile(constraints: "critical,CA:TRUE"),
            LeafProfile(keyUsage: "critical,digitalSignature,keyCertSign", constraints: "critical,CA:TRUE"),
        ]
        for profile in profiles {
            for isServer in [false, true] {
                let device = try account.device(.ed25519, profile)
                let (error, alert) = try meet(foreign: .init(isServer: isServer, device: device))
                #expect(error?.tlsCode == .certificateRefused, "\(profile)")
                #expect(alert == TLSAlert.unsupportedCertificate, "\(profile)")
            }
        }
    }

    @Test func anIntermediateIsTooDeep() throws {
        // All signatures are good, up to the account: only the depth is wrong.
        let middle = try TestAuthority(below: account)
        let device = try middle.device()
        let foreign = try ForeignPeer(.init(device: device))
        SSL_ctrl(foreign.ssl, SSL_CTRL_CHAIN_CERT, 1, UnsafeMutableRawPointer(middle.certificate.pointer))
        #expect(converse(try TLSSession(server: server), foreign).one?.tlsCode == .wrongAccount)
        #expect(foreign.receivedAlert == TLSAlert.unknownCA)
    }

    @Test(arguments: [[], [2, 0x68, 0x32], [7, 0x62, 0x61, 0x74, 0x6F, 0x6E, 0x2F, 0x32]] as [[UInt8]])
    func clientOfAnotherProtocol(protocols: [UInt8]) throws {
        let device = try account.device()
        let (error, alert) = try meet(foreign: .init(device: device, protocols: protocols))
        #expect(error?.tlsCode == .protocolViolation)
        #expect(alert == TLSAlert.noApplicationProtocol)
    }

    @Test func oursAmongOtherProtocols() throws {
        let device = try account.device()
        let several: [UInt8] = [2, 0x68, 0x32] + TLSContext.protocolList
        #expect(try meet(foreign: .init(device: device, protocols: several)).error == nil)
    }

    @Test func serverWithoutProtocolNeverSeesOurCertificate() throws {
        let device = try account.device()
        let client = try TLSSession(client: server, serverName: "x", expectedPeer: device.deviceID)
        let foreign = try ForeignPeer(.init(isServer: true, device: device, protocols: []))
        let errors = converse(client, foreign)
        #expect(errors.one?.tlsCode == .protocolViolation)
        #expect(shim_SSL_peer_certificate(foreign.ssl) == nil)
    }

    @Test func olderVersions() throws {
        let device = try account.device(.p256)
        let asClient = try meet(foreign: .init(device: device, version: TLS1_2_VERSION))
        #expect(asClient.error?.tlsCode == .protocolViolation)
        #expect(asClient.alert == TLSAlert.protocolVersion)
        let asServer = try meet(foreign: .init(isServer: true, device: device, version: TLS1_2_VERSION))
        #expect(asServer.error?.tlsCode == .protocolViolation)
    }
}
