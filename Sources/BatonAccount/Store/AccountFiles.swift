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
struct AccountRecord: Codable {
    private static let format = 1

    // A later format may lack any of these but the first.
    private let format: Int
    private var accountID: String?
    private var deviceName: String?
    private var generation: UInt32?

    init(_ account: Account) {
        format = Self.format
        accountID = account.id.description
        deviceName = account.deviceName
        generation = account.generation
    }

    static func read(
        in files: borrowing AccountFolder
    ) throws(AccountError) -> (id: AccountID, deviceName: String, generation: UInt32) {
        let path = files.path.appending(AccountFile.record)
        let bytes = try files.required(AccountFile.record)
        guard let record = bytes.withUnsafeBytes({ try? JSONDecoder().decode(AccountRecord.self, from: Data($0)) })
        else { throw .damaged(path: path, reason: "it is not the JSON that Baton wrote") }
        guard record.format == Self.format else { throw .unknownFormat(path: path, format: record.format) }
        guard let id = record.accountID.flatMap({ AccountID($0) }),
            let generation = record.generation, generation <= RevocationList.maximumNumber,
            let name = record.deviceName.flatMap({ try? DeviceName.validated($0) })
        else { throw .damaged(path: path, reason: "a field is missing or out of range") }
        return (id, name, generation)
    }
}
