import BatonDiscovery
import BatonEventLoop
import BatonMessages
import BatonTestSupport
import Crypto
import Foundation
import Logging
import SystemPackage
import Testing

@testable import BatonAccount
@testable import BatonNode
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
        /// Enrols a device with the account key where that is in a copy of the folder, else with a key that the thief makes.
        func enrol(withKeyInFolder isWritten: Bool = false) throws -> (device: Account, hasFoundKey: Bool) {
            let thief = try Scratch()
            let copy = FilePath(thief.url.appendingPathComponent("account").path)
            try FileManager.default.copyItem(atPath: stolen.store.folder.string, toPath: copy.string)
            if isWritten {
                let secret = account.key.secret.withUnsafeBytes { Data($0) }
                try secret.write(to: URL(fileURLWithPath: copy.appending("account-key").string))
            }
            let key = try findKey(in: loot(copy), of: stolen.account.id)
            let fresh = AccountStore(folder: FilePath(thief.url.appendingPathComponent("new").path))
            return (try fresh.join(key ?? AccountKey()), key != nil)
        }
        try await attack("a device that a thief of the folder enrols with the key that he finds, or with his own") {
            defence in
            let enrolled = try enrol()
            return try other.admits(
                enrolled.device.identity.tlsMaterial, checks: defence.isOn ? .all : .all.subtracting(.account))
        }
        // No code writes the key, so that there is nothing to switch off: a device that had written it stands in.
        func findAndEnrol(withKeyInFolder isWritten: Bool) throws -> Outcome {
            let enrolled = try enrol(withKeyInFolder: isWritten)
            return enrolled.hasFoundKey ? try other.admits(enrolled.device.identity.tlsMaterial) : .refused
        }
        try await attack("the account key, looked for in all that is in a stolen folder") {
            try findAndEnrol(withKeyInFolder: false)
        } against: {
            try findAndEnrol(withKeyInFolder: true)
        }
    }

    /// A revocation ends connections one after the other; a device that asks all the time on several has a question waiting
    /// when the list comes. What it would get opens every advertisement of the account from then on. (Races between a check
    /// and what it guards: CWE-367; sessions that outlive their end: CWE-613.)
    @Test("A revoked device asks for the new keys while its connection has not ended yet")
    func newKeys() async throws {
        try await attack("a revoked device asks for the new keys on a live connection") { defence in
            let account = try TestAccount(devices: 2)
            let (own, stolen) = (account.devices[0], account.devices[1])
            var revoking = own.account
            _ = try revoking.revoke([stolen.id], with: AccountSecrets(account.key))
            // It ends no connection by itself: as if it had not come to that.
            let exchange = try Origin.exchange(own, refusesRevoked: defence.isOn, on: EventLoop(name: "exchange"))
            let local = KeyEncryptionKey(localTo: own.account.identity)
            try await exchange.adopt(revoking.travellingLists(wrappedBy: local), wrappedBy: local)
            let origin = try await Origin(exchange: exchange)
            let thief = PeerName(id: stolen.id.description, name: "stolen")
            let ends = try await connectedPair(
                on: EventLoop(name: "own"),
                accepting: {
                    let context = try TLSContext(identity: TLSIdentity(own.account.identity))
                    return TLSChannel(try TLSSession(server: context), isClient: false)
                },
                dialling: {
                    let context = try TLSContext(identity: TLSIdentity(stolen.account.identity))
                    let session = try TLSSession(
                        client: context, serverName: "a.baton.invalid", expectedPeer: own.id.description)
                    return TLSChannel(session, isClient: true)
                })
            // What the keys are wrapped with, the thief has like every device that asks.
            let keys = try await ends.1.keyEncryptionKey.wrap(revoking.currentKeys.concatenated)
            let (answer, data) = try await origin.answer(to: .accountState(.init()), from: thief, over: ends)
            if case .failure(let failure) = answer { #expect(failure.code == .refused && data.isEmpty) }
            return Outcome(succeeds: data.holds(keys))
        }
    }

    /// The keys of before the revocation are in the stolen folder for good, and seal what any identity says: CWE-613.
    @Test("A revoked device under a new identity")
    func newIdentity() async throws {
        try await attack("a revoked device announces an activity under another identity") { defence in
            let account = try TestAccount(devices: 2)
            let (own, stolen) = (account.devices[0], account.devices[1])
            var revoking = own.account
            _ = try revoking.revoke([stolen.id], with: AccountSecrets(account.key))
            let (loop, storage) = (EventLoop(name: "directory"), try BlockingExecutor(name: "storage"))
            let directory = PeerDirectory(
                account: CurrentAccount(revoking), store: own.store, replayGuard: ReplayGuard(), known: KnownDevices(),
                discovery: ServiceDiscovery(loop: loop, executor: storage), storage: storage,
                believesOutdated: !defence.isOn, on: loop,
                logger: Logger(label: "attack") { _ in SwiftLogNoOpLogHandler() })
            let identity = try TestAccount(devices: 1).devices[0].account.identity
            var sealer = AdvertisementSealer(identity: identity, keys: stolen.account.currentKeys, epoch: 1)
            let strings = try sealer.seal(
                AdvertisementContent(
                    port: 40_000, addresses: [NetworkAddress("192.0.2.7")].compactMap { $0 }, deviceName: "desktop",
                    current: AdvertisedActivity(
                        id: [UInt8](repeating: 1, count: 16), type: "org.example.note",
                        teamTag: [UInt8](repeating: 0, count: 8), version: 1, title: "Open me")))
            await directory.handle(
                .record(instance: "a", interfaceIndex: 1, txt: strings.flatMap { [UInt8($0.count)] + $0 }))
            let isListed = await directory.all.contains { $0.device == identity.id }
            let isOffering = await directory.present.contains { $0.current != nil }
            #expect(isListed == isOffering)
            return Outcome(succeeds: isListed)
        }
    }

    /// The device's own key is the best the thief has: certificates that it signed, alone and below its own. RFC 5280,
    /// section 4.2.1.9, and CVE-2002-0862 (whoever has a certificate makes others).
    @Test("A device enrolled by another device")
    func deviceAsAuthority() async throws {
        let account = try TestAccount(devices: 2)
        let (stolen, other) = (account.devices[0], account.devices[1])
        try await attack("a device that was enrolled with all that is in a stolen folder") { defence in
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
