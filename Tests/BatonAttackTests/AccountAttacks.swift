// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDiscovery
import BatonEventLoop
import BatonMessages
import BatonProtocol
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

    /// A secret that makes devices of an account, in a form that could be on a disk.
    private enum Find: Equatable {
        case key(AccountKey)
        /// The source of all secrets of the account, or the seed of its authority's key: as good as the account key.
        case equivalent
    }

    /// Looks for secrets that make devices of an account, in every place where they could be. These are the account key
    /// as bytes, in hexadecimal digits and as people type it, and the derived secrets that are as good as it.
    private func find(in loot: [[UInt8]], of account: Account) -> Find? {
        func key(_ secret: [UInt8]) -> Find? {
            guard let key = AccountKey(secret: secret.withUnsafeBytes { SecretBytes(copying: $0) }),
                AccountSecrets(key).accountID == account.id
            else { return nil }
            return .key(key)
        }
        let authority = CertificateProfile.publicKey(ofAuthority: account.identity.authorityCertificate)
        func derived(_ bytes: [UInt8]) -> Find? {
            let secret = bytes.withUnsafeBytes { SecretBytes(copying: $0) }
            let id = SecretDerivation.expand(secret, "account-id").withUnsafeBytes { Array($0.prefix(8)) }
            let publicKey = try? CertificateProfile.signingKey(secret).publicKey.rawRepresentation
            let isSeed = publicKey.map { Array($0) == authority } ?? false
            let isRoot = id == withUnsafeBytes(of: account.id.rawValue.bigEndian) { Array($0) }
            return isSeed || isRoot ? .equivalent : nil
        }
        for file in loot {
            let text = String(decoding: file, as: UTF8.self)
            for word in text.split(whereSeparator: { !$0.isASCII || $0.isWhitespace || $0 == "\"" }) {
                let bytes = Array(word.utf8).withUnsafeBytes { SecretBytes(copying: $0) }
                if let typed = try? AccountKey(parsing: bytes), AccountSecrets(typed).accountID == account.id {
                    return .key(typed)
                }
                let pairs = stride(from: 0, to: word.count, by: 2).map { word.dropFirst($0).prefix(2) }
                if let found = key(pairs.compactMap { UInt8($0, radix: 16) }) { return found }
            }
            for start in file.indices {
                if let found = key(Array(file[start...].prefix(AccountKey.secretCount))) { return found }
                guard file.count - start >= 32 else { continue }
                if let found = derived(Array(file[start..<(start + 32)])) { return found }
            }
        }
        return nil
    }

    /// The forms in which a device that keeps what it must not could have it.
    private enum Form: CaseIterable {
        case bytes, digits, text, pseudoRandomKey, authoritySeed

        func written(_ key: AccountKey) -> [UInt8] {
            func bytes(_ secret: SecretBytes) -> [UInt8] { secret.withUnsafeBytes { Array($0) } }
            return switch self {
            case .bytes: [1, 2, 3] + bytes(key.secret) + [4]
            case .digits: Array("key: \(bytes(key.secret).map { String(format: "%02x", $0) }.joined())\n".utf8)
            case .text: bytes(key.formatted()) + [10]
            case .pseudoRandomKey: bytes(SecretDerivation.extract(key.secret, salt: Array("baton/1".utf8)))
            case .authoritySeed: [1, 2, 3] + bytes(AccountSecrets(key).certificateAuthoritySeed)
            }
        }
    }

    /// A thief of the folder must not be able to make devices. 1Password's and Signal's threat models name this;
    /// anybody who reads magic-wormhole's or croc's codes can use them.
    @Test("A stolen configuration folder, without the account key, trying to enrol another device")
    func enrolment() async throws {
        let account = try TestAccount(devices: 2)
        let (stolen, other) = (account.devices[0], account.devices[1])
        // The device keeps the account key under a passphrase.
        let passphrase = Array("correct horse battery staple".utf8).withUnsafeBytes { SecretBytes(copying: $0) }
        let sealedKey = Data(try SealedAccountKey(account.key, under: passphrase).encoded)
        /// Enrols a device with what makes devices where a copy of the folder has that, else with a key that the thief
        /// makes.
        ///
        /// - Parameter form: that of the account key, in a copy that has it.
        func enrol(withKey form: Form? = nil) throws -> (device: Account, found: Find?) {
            let thief = try ScratchFolder("attack")
            defer { thief.remove() }
            let copy = thief.filePath.appending("account")
            try FileManager.default.copyItem(atPath: stolen.store.folder.string, toPath: copy.string)
            try sealedKey.write(to: URL(fileURLWithPath: copy.appending("account-key").string))
            if let form {
                try Data(form.written(account.key)).write(
                    to: URL(fileURLWithPath: copy.appending("left-over").string))
            }
            let found = try find(in: loot(copy), of: stolen.account)
            let fresh = AccountStore(folder: thief.filePath.appending("new"))
            let key: AccountKey? = if case .key(let key)? = found { key } else { nil }
            return (try fresh.join(key ?? AccountKey()), found)
        }
        try await attack("a device that a thief of the folder enrols with the key that he finds, or with his own") {
            try other.admits(try enrol().device.identity.tlsMaterial)
        }
        // No code writes it, so that there is nothing to switch off: a device that had written it stands in.
        func findAndEnrol(withKey form: Form? = nil) throws -> Outcome {
            let enrolled = try enrol(withKey: form)
            return switch enrolled.found {
            case .key: try other.admits(enrolled.device.identity.tlsMaterial)
            case .equivalent: .succeeded
            case nil: .refused
            }
        }
        for form in Form.allCases {
            try await attack("the account key (\(form)), looked for in all that is in a stolen folder") {
                try findAndEnrol()
            } against: {
                try findAndEnrol(withKey: form)
            }
        }
    }

    /// A revocation ends connections one after the other; a device that asks all the time on several has a question
    /// waiting when the list comes. The new keys open every advertisement of the account from then on. (Races
    /// between a check and what it guards: CWE-367; sessions that outlive their end: CWE-613.)
    @Test("A revoked device asks for the new keys while its connection has not ended yet")
    func newKeys() async throws {
        try await attack("a revoked device asks for the new keys on a live connection") {
            let account = try TestAccount(devices: 2)
            let (own, stolen) = (account.devices[0], account.devices[1])
            var revoking = own.account
            _ = try revoking.revoke([stolen.id], with: AccountSecrets(account.key))
            // It ends no connection by itself: as if it had not come to that.
            let exchange = try Origin.exchange(own, on: ControlLoop.loop)
            let local = own.account.identity.localWrappingKey
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
            // The thief has the wrapping key, like every device that asks.
            let keys = try await revoking.currentKeys.concatenated.wrapped(with: ends.1.keyEncryptionKey)
            let (answer, data) = try await origin.answer(to: .accountState(.init()), from: thief, over: ends)
            if case .failure(let failure) = answer { #expect(failure.code == .refused && data.isEmpty) }
            return Outcome(succeeds: data.holds(keys))
        }
    }

    /// The keys of before the revocation are in the stolen folder for good, and seal what any identity says: CWE-613.
    @Test("A revoked device under a new identity")
    func newIdentity() async throws {
        try await attack("a revoked device announces an activity under another identity") {
            let account = try TestAccount(devices: 2)
            let (own, stolen) = (account.devices[0], account.devices[1])
            var revoking = own.account
            _ = try revoking.revoke([stolen.id], with: AccountSecrets(account.key))
            let (loop, storage) = (ControlLoop.loop, try BlockingExecutor(name: "storage"))
            let directory = PeerDirectory(
                account: CurrentAccount(revoking), store: own.store, replayGuard: ReplayGuard(), known: KnownDevices(),
                discovery: ServiceDiscovery(loop: loop, executor: storage),
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
        try await attack("a device that was enrolled with all that is in a stolen folder") {
            let seed = SecretBytes.random(count: 32)
            let publicKey = try Array(CertificateProfile.signingKey(seed).publicKey.rawRepresentation)
            let signer = try #require(Ed25519DER.seed(privateKey: stolen.tlsMaterial.privateKey))
            let material = TLSMaterial(
                authorityCertificate: try CertificateProfile.authority(seed: signer),
                certificate: try CertificateProfile.device(publicKey: publicKey, authoritySeed: signer),
                privateKey: Ed25519DER.privateKey(seed: seed))
            return try other.admits(material)
        }
    }
}

extension TestAccount.Device {
    /// Whether this device lets in one with this identity.
    fileprivate func admits(_ material: TLSMaterial) throws -> Outcome {
        let server = try TLSSession(server: context())
        let client = try TLSSession(
            client: material.credulousContext(), serverName: "a.baton.invalid", expectedPeer: id.description)
        client.believePeer()
        converse(client, server)
        guard server.say("welcome") else { return .refused }
        converse(client, server)
        return Outcome(succeeds: client.text() == Array("welcome".utf8))
    }
}
