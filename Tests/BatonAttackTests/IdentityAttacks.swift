// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import COpenSSL
import Testing

@testable import BatonAccount
@testable import BatonTLS

/// The machine in the middle, and devices that are not whom they say.
///
/// KDE Connect trusted the identity that a packet stated (CVE-2025-32898 to CVE-2025-32900); Warpinator, LocalSend and
/// Quick Share accept the first that answers on the local network. AirDrop's mutual authentication reveals a user's
/// identity before it knows to whom (Heinrich et al., "PrivateDrop", USENIX Security 2021).
@Suite("Attacks on identity")
struct IdentityAttacks {
    private static let secret = "the user's payload"
    private let account: TestAccount
    private var laptop: TestAccount.Device { account.devices[0] }
    private var desktop: TestAccount.Device { account.devices[1] }
    private var third: TestAccount.Device { account.devices[2] }

    init() throws {
        account = try TestAccount(devices: 3)
    }

    /// Whether a client with this identity gets the laptop's secret.
    private func laptopServes(
        _ attacker: TLSMaterial, withoutCertificate: Bool = false,
        refuses: @escaping @Sendable (String) -> Bool = { _ in false }
    ) throws -> Outcome {
        let server = try TLSSession(server: laptop.context(refuses: refuses))
        let client = try TLSSession(
            client: attacker.credulousContext(), serverName: "a.baton.invalid", expectedPeer: laptop.id.description)
        client.believePeer()
        if withoutCertificate { SSL_certs_clear(client.pointer) }
        converse(client, server)
        guard server.say(Self.secret) else { return .refused }
        converse(client, server)
        return Outcome(succeeds: client.text() == Array(Self.secret.utf8))
    }

    /// Whether the laptop, which dials the desktop, tells its secret to who answers in its place.
    private func laptopTells(_ attacker: TLSMaterial) throws -> Outcome {
        let client = try TLSSession(
            client: laptop.context(), serverName: "a.baton.invalid", expectedPeer: desktop.id.description)
        let server = try TLSSession(server: attacker.credulousContext())
        server.believePeer()
        converse(client, server)
        guard client.say(Self.secret) else { return .refused }
        converse(client, server)
        return Outcome(succeeds: server.text() == Array(Self.secret.utf8))
    }

    /// A server has one in every handshake (RFC 8446, section 4.4.2.4: an empty list ends it), which no check here
    /// could leave out.
    @Test("A client without a certificate")
    func noCertificate() async throws {
        try await attack("a client that shows no certificate") {
            try laptopServes(third.tlsMaterial, withoutCertificate: true)
        }
    }

    @Test("The certificate of another account")
    func otherAccount() async throws {
        let stranger = try TestAccount(devices: 1).devices[0]
        try await attack("a client with a certificate of another account") {
            try laptopServes(stranger.tlsMaterial)
        }
        // The account and the name of the dialled device each refuse it.
        try await attack("a machine in the middle with a certificate of another account") {
            try laptopTells(stranger.tlsMaterial)
        }
    }

    /// Here the device has the key of the dialled one. Only the account tells that it is not the user's any more.
    @Test("The right device, with a certificate of another account")
    func otherAuthority() async throws {
        let other = AccountSecrets(try TestAccount(devices: 1).key)
        let key = try #require(Ed25519DER.seed(privateKey: desktop.tlsMaterial.privateKey))
        let turned = try DeviceIdentity(issuedBy: other, seed: key)
        #expect(turned.id == desktop.id)
        try await attack("the device that was dialled, with a certificate of another account") {
            try laptopTells(turned.tlsMaterial)
        }
    }

    @Test("The certificate of another device of the same account")
    func otherDevice() async throws {
        try await attack("a machine in the middle that is another device of the account") {
            try laptopTells(third.tlsMaterial)
        }
    }

    @Test("A node's own certificate: the reflection of a node to itself, or a copied disk")
    func ownIdentity() async throws {
        try await attack("the laptop's own certificate, shown to the laptop") {
            try laptopServes(laptop.tlsMaterial)
        }
    }

    /// A stolen laptop keeps its key and its certificate; croc and magic-wormhole know no revoking at all.
    @Test("A revoked device")
    func revoked() async throws {
        let revoked = third.id.description
        try await attack("a device that was revoked connects") { defence in
            try laptopServes(third.tlsMaterial, refuses: { defence.isOn && $0 == revoked })
        }
        try await attack("a device that was revoked answers in the place of another") { defence in
            let server = try TLSSession(server: third.tlsMaterial.credulousContext())
            server.believePeer()
            let client = try TLSSession(
                client: laptop.context(refuses: { defence.isOn && $0 == revoked }), serverName: "a.baton.invalid",
                expectedPeer: revoked)
            converse(client, server)
            guard client.say(Self.secret) else { return .refused }
            converse(client, server)
            return Outcome(succeeds: server.text() == Array(Self.secret.utf8))
        }
    }
}
