// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import FoundationEssentials
import SystemPackage

enum AccountFile {
    static let record = "account.json"
    static let privateKey = "device-key.der"
    static let certificate = "device-certificate.der"
    static let authority = "authority-certificate.der"
    static let epoch = "epoch"
    static let replay = "replay"
    static let sealedKey = "account-key"

    static let state = "account-state"
    static let devices = "devices"

    private static let keysPrefix = "generation-"
    private static let keysSuffix = ".keys"

    static func keys(of generation: GenerationID) -> String {
        keysPrefix + (generation.list.map { "\(generation.number)-\($0)" } ?? "\(generation.number)") + keysSuffix
    }

    /// Whose keys are in a file of this name; nil for any other file.
    static func generation(ofKeys name: String) -> GenerationID? {
        guard name.hasPrefix(keysPrefix), name.hasSuffix(keysSuffix) else { return nil }
        let parts = name.dropFirst(keysPrefix.count).dropLast(keysSuffix.count).split(
            separator: "-", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), let number = UInt32(parts[0]) else { return nil }
        let id = GenerationID(number: number, list: parts.count == 2 ? ListDigest(parts[1]) : nil)
        return keys(of: id) == name ? id : nil
    }
}

/// The content of `account.json`; it has no secret.
struct AccountRecord {
    static let format = 1

    let accountID: AccountID
    let deviceName: String
    let generation: UInt32

    init(_ account: Account) {
        self.accountID = account.id
        self.deviceName = account.deviceName
        self.generation = account.generation
    }

    init(decoding bytes: [UInt8], path: FilePath) throws(AccountError) {
        guard let content = try? JSONDecoder().decode(Content.self, from: Data(bytes)) else {
            throw .damaged(path: path, reason: "it is not the JSON that Baton wrote")
        }
        guard content.format == Self.format else { throw .unknownFormat(path: path, format: content.format) }
        guard let id = content.accountID.flatMap({ AccountID($0) }),
            let generation = content.generation, generation <= RevocationList.maximumNumber,
            let name = content.deviceName.flatMap({ try? DeviceName.validated($0) })
        else { throw .damaged(path: path, reason: "a field is missing or out of range") }
        (accountID, deviceName, self.generation) = (id, name, generation)
    }

    func encoded() throws(AccountError) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        do {
            let content = Content(
                format: Self.format, accountID: accountID.description, deviceName: deviceName, generation: generation)
            return try Array(encoder.encode(content)) + [UInt8(ascii: "\n")]
        } catch {
            throw .cryptography("JSON: \(error)")
        }
    }

    private struct Content: Codable {
        let format: Int
        var accountID: String?
        var deviceName: String?
        var generation: UInt32?
    }
}

extension AccountFolder {
    func write(_ name: String, _ bytes: [UInt8]) throws(AccountError) {
        try bytes.withUnsafeBufferPointer { bytes throws(AccountError) in
            try write(name, UnsafeRawBufferPointer(bytes))
        }
    }

    func write(_ name: String, _ secret: SecretBytes) throws(AccountError) {
        try secret.withUnsafeBytes { bytes throws(AccountError) in try write(name, bytes) }
    }
}
