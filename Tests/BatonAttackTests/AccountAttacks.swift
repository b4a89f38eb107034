import BatonTestSupport
import Crypto
import Foundation
import SystemPackage
import Testing

@testable import BatonAccount
@testable import BatonTLS

/// A thief with everything that a device has on its disk.
@Suite("Attacks with a stolen device")
struct AccountAttacks {
    /// Every byte of the stolen folder.
    private func loot(_ folder: FilePath) throws -> [[UInt8]] {
        try FileManager.default.subpathsOfDirectory(atPath: folder.string).sorted().compactMap { name in
            FileManager.default.contents(atPath: folder.appending(name).string).map { Array($0) }
        }
    }

    /// Looks for the account key in every place where it could stand, as bytes and as text.
    private func findKey(in loot: [[UInt8]], of id: AccountID) -> AccountKey? {
        for file in loot where file.count >= AccountKey.secretCount {
            for start in 0...(file.count - AccountKey.secretCount) {
                let secret = Array(file[start..<(start + AccountKey.secretCount)])
                guard let key = AccountKey(secret: secret.withUnsafeBytes { SecretBytes(copying: $0) }) else {
                    continue
                }
                if AccountSecrets(key).accountID == id { return key }
            }
        }
        return nil
    }

    /// Stealing the folder must not make the thief a maker of devices: 1Password's and Signal's threat models name it;
    /// magic-wormhole's and croc's codes are good for whoever reads them.
    @Test("A stolen configuration folder, without the account key, trying to enrol another device")
    func enrolment() async throws {
        let account = try TestAccount(devices: 2)
        let (stolen, other) = (account.devices[0], account.devices[1])
        try await attack("the account key is in the stolen folder", proof: .control) { defence in
            let thief = try Scratch()
            let copy = FilePath(thief.url.appendingPathComponent("account").path)
            try FileManager.default.copyItem(atPath: stolen.store.folder.string, toPath: copy.string)
            // The defence is that no code writes the key, which cannot be switched off: one that could would be worse than
            // the attack. A device that had written it stands in.
            if !defence.isOn {
                let secret = account.key.secret.withUnsafeBytes { Data($0) }
                try secret.write(to: URL(fileURLWithPath: copy.appending("account-key").string))
            }
            guard let key = try findKey(in: loot(copy), of: stolen.account.id) else { return .refused }
            let fresh = try AccountStore(folder: FilePath(thief.url.appendingPathComponent("new").path)).join(key)
            return try other.admits(fresh.identity.tlsMaterial)
        }
    }

    /// The device's own key is the best the thief has: certificates that it signed, alone and below its own.
    @Test("A device enrolled by another device")
    func deviceAsAuthority() async throws {
        let account = try TestAccount(devices: 2)
        let (stolen, other) = (account.devices[0], account.devices[1])
        try await attack("a certificate signed by the key of a device") { defence in
            let seed = SecretBytes.random(count: 32)
            let publicKey = try Array(CertificateProfile.signingKey(seed).publicKey.rawRepresentation)
            let signer = try #require(Ed25519DER.seed(privateKey: stolen.tlsMaterial.privateKey))
            let material = TLSMaterial(
                authorityCertificate: try CertificateProfile.authority(seed: signer),
                certificate: try CertificateProfile.device(publicKey: publicKey, authoritySeed: signer),
                privateKey: Ed25519DER.privateKey(seed: seed))
            return try other.admits(material, checks: defence.isOn ? .all : .all.subtracting(.account))
        }
    }
}

extension TestAccount.Device {
    /// Whether this device lets in one with this identity.
    fileprivate func admits(_ material: TLSMaterial, checks: PeerChecks = .all) throws -> Outcome {
        let identity = try material.certificate.withUnsafeBytes { certificate in
            try material.authorityCertificate.withUnsafeBytes { authority in
                try material.privateKey.withUnsafeBytes { key in
                    try TLSIdentity(certificate: certificate, privateKey: key, accountCA: authority)
                }
            }
        }
        let server = try TLSSession(server: context(checks: checks))
        let client = try TLSSession(
            client: TLSContext(identity: identity, checks: []), serverName: "a.baton.invalid",
            expectedPeer: id.description)
        converse(client, server)
        guard server.say("welcome") else { return .refused }
        converse(client, server)
        return Outcome(succeeds: client.text() == Array("welcome".utf8))
    }
}
