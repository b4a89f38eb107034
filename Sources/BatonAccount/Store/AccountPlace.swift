// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import Glibc
import SystemPackage

/// The folder that contains the account: makes it, excludes other processes, and removes what a crash left.
extension AccountStore {
    /// How long to wait for another process, in seconds. It is many times what a few small files need on any disk, and
    /// short enough for a command that prints nothing meanwhile.
    static var patience: Int { 5 }

    /// Runs `body` while no other process creates, joins or leaves here.
    ///
    /// The lock is `flock(2)` on the parent folder. It leaves no file behind and ends with the process. The other
    /// process writes a few small files; this waits for it up to ``patience``.
    ///
    /// - Throws: ``AccountError/busy(path:seconds:)``.
    func withExclusiveAccess<Result: ~Copyable>(
        _ body: () throws(AccountError) -> Result
    ) throws(AccountError) -> Result {
        try system("make", parent) { () throws(Errno) in try DurableFile.makeFolder(parent) }
        guard let siblings = try AccountFolder.open(parent, checkingAccess: false) else {
            throw .system(doing: "open", path: parent, error: .noSuchFileOrDirectory)
        }
        defer { withExtendedLifetime(siblings) {} }
        let deadline = ContinuousClock.now + .seconds(Self.patience)
        while try !siblings.lock() {
            guard ContinuousClock.now < deadline else { throw .busy(path: parent, seconds: Self.patience) }
            poll(nil, 0, 10)
        }
        // What a create, join or leave left that was killed.
        for name in try siblings.names()
        where name.hasPrefix(leftoverPrefix + "new-") || name.hasPrefix(leftoverPrefix + "leaving-") {
            try removeWiped(parent.appending(name))
        }
        return try body()
    }

    /// The same, if no node runs on the account. Every writer takes exclusive access, so a lock on the account's folder
    /// belongs to a node.
    func withoutNode<Result>(_ body: () throws(AccountError) -> Result) throws(AccountError) -> Result {
        try withExclusiveAccess { () throws(AccountError) in
            if let files = try AccountFolder.open(folder, checkingAccess: false), try !files.lock() {
                throw .nodeRunning
            }
            return try body()
        }
    }

    /// Refuses where a node runs on the account, before a user is asked anything.
    package func refuseNode() throws(AccountError) {
        try withoutNode {}
    }

    /// Locks the account for a node for as long as the result lives. The end of the process unlocks it as well.
    ///
    /// - Throws: ``AccountError/nodeRunning`` if another node holds it, at any socket; ``AccountError/noAccount``.
    package func hold() throws(AccountError) -> AccountHold {
        try withExclusiveAccess { () throws(AccountError) in
            let files = try openExisting()
            guard try files.lock() else { throw .nodeRunning }
            return AccountHold(files)
        }
    }

    /// A name beside the folder that nothing has: `.<folder>.<purpose>-<random>`.
    func sibling(_ purpose: String) -> FilePath {
        parent.appending(leftoverPrefix + purpose + "-" + Base32.encode(randomBytes(5)))
    }

    var parent: FilePath {
        let parent = folder.removingLastComponent()
        return parent.isEmpty ? "." : parent
    }

    private var leftoverPrefix: String { ".\(folder.lastComponent?.string ?? "account")." }

    func removeWiped(_ path: FilePath) throws(AccountError) {
        try AccountFolder.open(path, checkingAccess: false)?.wipe()
        let result = rmdir(path.string)
        if result != 0, errno == ENOENT { return }
        try check(result, "remove", path)
    }

    /// Makes one folder with mode 0700 under any umask.
    func makeFolder(_ path: FilePath) throws(AccountError) {
        try check(mkdir(path.string, 0o700), "make", path)
        try check(chmod(path.string, 0o700), "make", path)
    }
}

/// A node's lock on its account. No other process runs on the account or changes it until this goes.
package struct AccountHold: ~Copyable, Sendable {
    private let folder: AccountFolder

    init(_ folder: consuming AccountFolder) {
        self.folder = folder
    }
}
