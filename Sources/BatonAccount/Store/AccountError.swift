// SPDX-License-Identifier: Apache-2.0

package import SystemPackage

/// A reason why an account cannot be made, joined, read or left.
///
/// Every description is one sentence for the user, with the next step if Baton can know it.
package enum AccountError: Error, Equatable, CustomStringConvertible {
    case noAccount
    case accountExists
    /// A node runs on the account. It would neither see nor keep the changes of another process.
    case nodeRunning
    /// Another process has locked the folder that the account is in, as commands do while they write.
    case busy(path: FilePath, seconds: Int)
    case exposed(path: FilePath, isFolder: Bool)
    case foreign(path: FilePath)
    case damaged(path: FilePath, reason: String)
    case unknownFormat(path: FilePath, format: Int)
    case invalidDeviceName(reason: String)
    case system(doing: String, path: FilePath, error: Errno)
    case cryptography(String)

    package var description: String {
        switch self {
        case .noAccount:
            "no account on this device: run `baton`, which makes one or joins yours"
        case .accountExists:
            "this device is in an account already: run `baton account leave` first"
        case .nodeRunning:
            "a node is running with this account, so nothing was changed: stop it first (a service with `baton node"
                + " uninstall`); if `baton status` does not find it, it was started with another XDG_RUNTIME_DIR"
        case .busy(let path, let seconds):
            "another program has kept \(path) locked for \(seconds) seconds: try again when that `baton account` or"
                + " `baton devices revoke` is over, or end it"
        case .exposed(let path, let isFolder):
            "others can read \(path), which holds this device's keys; run: chmod \(isFolder ? "700" : "600")"
                + " \(ShellWord.quoted(path.string))"
        case .foreign(let path):
            "\(path) belongs to another user; run Baton as the user who made the account, or correct the owner"
        case .damaged(let path, let reason):
            "\(path) is damaged (\(reason)); restore it, or run `baton account leave` and join again"
        case .unknownFormat(let path, let format):
            "\(path) was written by a later Baton (format \(format)); install a newer Baton here"
        case .invalidDeviceName(let reason):
            "this device name cannot be used: \(reason)"
        case .system(let doing, let path, let error):
            "cannot \(doing) \(path): \(error)"
        case .cryptography(let detail):
            "the cryptography library refused what it must be able to do; reinstall Baton (\(detail))"
        }
    }
}
