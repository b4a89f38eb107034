// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Foundation
import SystemPackage
import Testing

@testable import BatonAccount

@Suite struct CertificateTests {
    private func pem(_ der: [UInt8]) -> String {
        "-----BEGIN CERTIFICATE-----\n" + Data(der).base64EncodedString(options: .lineLength64Characters)
            + "\n-----END CERTIFICATE-----\n"
    }

    @Test func theAuthorityIsTheSameBytesEverywhere() throws {
        let vectors = try TestVectors.load()
        let secrets = AccountSecrets(try #require(AccountKey(secret: vectors.accountKey.secret.secret)))
        for _ in 0..<3 {
            let der = try CertificateProfile.authority(seed: secrets.certificateAuthoritySeed)
            #expect(der == vectors.caCertificate.bytes)
        }
        let account = try TestAccount(devices: 3)
        let authorities = Set(account.devices.map(\.tlsMaterial.authorityCertificate))
        #expect(authorities.count == 1)
        #expect(Set(account.devices.map(\.tlsMaterial.certificate)).count == 3)
    }

    @Test func opensslVerifiesADevice() throws {
        let account = try TestAccount(devices: 1)
        let device = account.devices[0]
        let other = try TestAccount(devices: 1)
        func file(_ name: String, _ der: [UInt8]) throws -> String {
            let path = account.root.appending(name).string
            try pem(der).write(toFile: path, atomically: false, encoding: .ascii)
            return path
        }
        let authority = try file("ca.pem", device.tlsMaterial.authorityCertificate)
        let leaf = try file("leaf.pem", device.tlsMaterial.certificate)
        let stranger = try file("stranger.pem", other.devices[0].tlsMaterial.certificate)
        for purpose in ["sslserver", "sslclient"] {
            let verified = try run(
                "openssl", "verify", "-purpose", purpose, "-CAfile", authority, "-check_ss_sig", "-verify_hostname",
                device.id.certificateName, leaf)
            #expect(verified.status == 0, "\(verified.output)")
        }
        #expect(try run("openssl", "verify", "-CAfile", authority, stranger).status != 0)
        #expect(
            try run(
                "openssl", "verify", "-CAfile", authority, "-verify_hostname", other.devices[0].id.certificateName, leaf
            ).status != 0)
    }

    @Test func opensslReadsTheProfile() throws {
        let account = try TestAccount(devices: 1)
        let material = account.devices[0].tlsMaterial
        let leaf = try run(
            "openssl", "x509", "-inform", "DER", "-noout", "-text", input: material.certificate
        ).output
        for part in [
            "Version: 3", "Signature Algorithm: ED25519", "Issuer: CN = Baton Account", "Subject: CN = device",
            "Not Before: Jan  1 00:00:00 2000 GMT", "Not After : Dec 31 23:59:59 9999 GMT",
            "X509v3 Key Usage: critical\n                Digital Signature\n",
            "TLS Web Server Authentication, TLS Web Client Authentication\n",
            "DNS:\(account.devices[0].id).device.baton.invalid\n",
        ] {
            #expect(leaf.contains(part), "\(part) in \(leaf)")
        }
        let authority = try run(
            "openssl", "x509", "-inform", "DER", "-noout", "-text", input: material.authorityCertificate
        ).output
        for part in [
            "Serial Number: 1 (0x1)", "Issuer: CN = Baton Account", "Subject: CN = Baton Account",
            "Not Before: Jan  1 00:00:00 2000 GMT", "Not After : Dec 31 23:59:59 9999 GMT",
            "CA:TRUE, pathlen:0", "X509v3 Key Usage: critical\n                Certificate Sign\n",
        ] {
            #expect(authority.contains(part), "\(part) in \(authority)")
        }
        for text in [leaf, authority] {
            #expect(!text.contains("Key Identifier"))
            #expect(!text.contains(account.devices[0].account.deviceName))
        }
    }

    @Test func opensslReadsThePrivateKey() throws {
        let account = try TestAccount(devices: 1)
        let identity = account.devices[0].account.identity
        let key = try run(
            "openssl", "pkey", "-inform", "DER", "-noout", "-text_pub",
            input: identity.tlsMaterial.privateKey.revealed)
        #expect(key.status == 0, "\(key.output)")
        let digits = identity.publicKey.map { String(format: "%02x", $0) }.joined()
        #expect(key.output.filter { $0.isHexDigit }.contains(digits))
    }

    @Test func serialNumbersAreRandomAndOfOneLength() throws {
        let secrets = AccountSecrets(AccountKey())
        let identities = try (0..<20).map { _ in try DeviceIdentity(issuedBy: secrets) }
        #expect(Set(identities.map(\.certificate)).count == 20)
        #expect(Set(identities.map(\.certificate.count)).count == 1)
        let seed = SecretBytes.random(count: 32)
        let twice = try (0..<2).map { _ in try DeviceIdentity(issuedBy: secrets, seed: seed) }
        #expect(twice[0].id == twice[1].id && twice[0].certificate != twice[1].certificate)
    }

    @Test func anIdentityThatDoesNotFitIsRefused() throws {
        let secrets = AccountSecrets(AccountKey())
        let one = try DeviceIdentity(issuedBy: secrets)
        let two = try DeviceIdentity(issuedBy: secrets)
        let stranger = try DeviceIdentity(issuedBy: AccountSecrets(AccountKey()))
        func identity(_ key: SecretBytes, _ leaf: [UInt8], _ authority: [UInt8]) -> DeviceIdentity? {
            DeviceIdentity(privateKey: key, certificate: leaf, authorityCertificate: authority)
        }
        #expect(identity(one.privateKey, one.certificate, one.authorityCertificate)?.id == one.id)
        #expect(identity(one.privateKey, two.certificate, one.authorityCertificate) == nil)
        #expect(identity(one.privateKey, one.certificate, stranger.authorityCertificate) == nil)
        #expect(identity(one.privateKey, one.certificate, one.certificate) == nil)
        #expect(identity(one.privateKey, [], one.authorityCertificate) == nil)
    }
}
