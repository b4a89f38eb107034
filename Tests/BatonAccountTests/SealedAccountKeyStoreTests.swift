// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import SystemPackage
import Testing

@testable import BatonAccount

@Suite("The store of an account with a passphrase")
struct SealedAccountKeyStoreTests {
    private let scratch: ScratchFolder
    private let passphrase = SecretBytes(of: Array("correct horse".utf8))
    private func store(_ name: String) -> AccountStore { AccountStore(folder: scratch.filePath.appending(name)) }

    init() throws {
        scratch = try ScratchFolder("sealed")
    }

    @Test("The key is kept where the account was made, and nowhere else")
    func keeping() throws {
        var shown: AccountKey?
        let account = try store("first").create(passphrase: passphrase) { shown = $0 }
        let key = try #require(shown)
        let sealed = try #require(try store("first").sealedKey())
        #expect(try sealed.open(with: passphrase, of: account.id) == key)
        let file = scratch.path + "/first/account-key"
        #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o600)

        _ = try store("second").join(key)
        #expect(try store("second").sealedKey() == nil)
        _ = try store("third").create { _ in }
        #expect(try store("third").sealedKey() == nil)
        #expect(throws: AccountError.noAccount) { try self.store("fourth").sealedKey() }

        // An open file is refused, as each file of the account is.
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
        #expect(throws: AccountError.exposed(path: FilePath(file), isFolder: false)) {
            try self.store("first").sealedKey()
        }
        try store("first").leave()
        #expect(!FileManager.default.fileExists(atPath: file))
    }

    @Test("A new account keeps its key under the passphrase that it is given")
    func rotation() throws {
        let store = store("rotated")
        _ = try store.create(passphrase: passphrase) { _ in }
        var shown: AccountKey?
        let new = try store.rotate(passphrase: passphrase) { shown = $0 }
        #expect(try store.sealedKey()?.open(with: passphrase, of: new.id) == shown)
        _ = try store.rotate { _ in }
        #expect(try store.sealedKey() == nil)
    }
}
