// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// The folder around the account: making it, excluding other processes, and removing what a crash left.
extension AccountStore {
    /// For how many seconds another process is waited for: many times as long as a few small files take on any disk,
    /// and short enough that nobody wonders what a command or a node does that says nothing meanwhile.
    static var patience: Int { 5 }

    /// Runs `body` while no other process creates, joins or leaves here.
    ///
    /// The lock is `flock(2)` on the parent folder, which leaves no file behind and ends with the process. Whoever has
    /// it writes a few small files, and is waited for until ``patience`` is over.
    ///
    /// - Throws: ``AccountError/busy(path:seconds:)``.
    func withExclusiveAccess<Result: ~Copyable>(
        _ body: () throws(AccountError) -> Result
    ) throws(AccountError) -> Result {
        try makeFolders(parent)
        let descriptor = retrying { open(parent.string, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        try check(descriptor, "open", parent)
        defer { _ = close(descriptor) }
        try lock(descriptor)
        try removeLeftovers(in: parent)
        return try body()
    }

    private func lock(_ descriptor: Int32) throws(AccountError) {
        let deadline = ContinuousClock.now + .seconds(Self.patience)
        while retrying({ flock(descriptor, LOCK_EX | LOCK_NB) }) != 0 {
            guard errno == EWOULDBLOCK else {
                throw .system(doing: "lock", path: parent, error: Errno(rawValue: errno))
            }
            guard ContinuousClock.now < deadline else { throw .busy(path: parent, seconds: Self.patience) }
            poll(nil, 0, 10)
        }
    }

    /// Refuses where a node runs on the account, before a user is asked anything.
    package func refuseNode() throws(AccountError) {
        try withExclusiveAccess { () throws(AccountError) in try refuseNodeExclusively() }
    }

    /// The same within exclusive access, for as long as that lasts. Writers exclude each other by it, so that whoever
    /// has locked the account's folder is a node.
    func refuseNodeExclusively() throws(AccountError) {
        guard let files = try AccountFolder.open(folder, checkingAccess: false) else { return }
        guard try files.lock() else { throw .nodeRunning }
    }

    /// Takes the account for a node, for as long as the result lives; the end of the process ends it as well.
    ///
    /// - Throws: ``AccountError/nodeRunning`` where another node has it, whichever socket that listens at;
    ///   ``AccountError/noAccount``.
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

    /// The folder that the account's folder is in.
    var parent: FilePath {
        let parent = folder.removingLastComponent()
        return parent.isEmpty ? "." : parent
    }

    private var leftoverPrefix: String { ".\(folder.lastComponent?.string ?? "account")." }

    /// Removes what a create, join or leave left behind that was killed.
    private func removeLeftovers(in parent: FilePath) throws(AccountError) {
        guard let siblings = try AccountFolder.open(parent, checkingAccess: false) else { return }
        for name in try siblings.names()
        where name.hasPrefix(leftoverPrefix + "new-") || name.hasPrefix(leftoverPrefix + "leaving-") {
            try removeWiped(parent.appending(name))
        }
    }

    /// Overwrites and removes a folder of files.
    func removeWiped(_ path: FilePath) throws(AccountError) {
        try AccountFolder.open(path, checkingAccess: false)?.wipe()
        let result = rmdir(path.string)
        if result != 0, errno == ENOENT { return }
        try check(result, "remove", path)
    }

    /// Makes one folder that only the owner may enter, whatever the umask says.
    func makeFolder(_ path: FilePath) throws(AccountError) {
        try check(mkdir(path.string, 0o700), "make", path)
        try check(chmod(path.string, 0o700), "make", path)
    }

    /// Makes the folders that are missing on the way to a path.
    private func makeFolders(_ path: FilePath) throws(AccountError) {
        guard !path.isEmpty, mkdir(path.string, 0o700) != 0 else { return }
        switch errno {
        case EEXIST:
            return
        case ENOENT:
            try makeFolders(path.removingLastComponent())
            if mkdir(path.string, 0o700) != 0, errno != EEXIST {
                throw .system(doing: "make", path: path, error: Errno(rawValue: errno))
            }
        case let error:
            throw .system(doing: "make", path: path, error: Errno(rawValue: error))
        }
    }
}

/// A node's hold on its account: nobody else runs on it or changes it until this goes.
package struct AccountHold: ~Copyable, Sendable {
    private let folder: AccountFolder

    init(_ folder: consuming AccountFolder) {
        self.folder = folder
    }
}

/// `rename(2)`: below zero on failure.
func rename(_ source: FilePath, to target: FilePath) -> Int32 {
    Glibc.rename(source.string, target.string)
}

/// The number the last failed system call left behind.
func systemErrorNumber() -> Int32 { errno }
