// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import SystemPackage

/// The state that this device keeps between runs so that no old advertisement counts twice.
extension AccountStore {
    /// The end of the year 9999: a clock beyond it is broken, and its time must not use the epochs up.
    static let latestTime: UInt64 = 253_402_300_799

    /// The epoch to announce under in this run: greater than any before, and at least the time.
    ///
    /// It is stored before it is returned, so that it cannot come again after a crash. Call once, at the beginning of a
    /// run. If the clock was ever ahead, epochs go on from there by ones; receivers need only that they rise.
    ///
    /// - Parameter unixTime: Seconds since 1970 by this device's clock, right or wrong.
    package func nextEpoch(unixTime: UInt64) throws(AccountError) -> UInt64 {
        let files = try openExisting()
        // This process is the only writer from here on, so that temporary files of a killed run can go.
        try files.wipe(".")
        let path = folder.appending(AccountFile.epoch)
        var stored: UInt64 = 0
        if let bytes = try files.read(AccountFile.epoch) {
            let text = bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
            guard text.last == "\n", let value = UInt64(text.dropLast()), value < Advertisement.maximumEpoch - 1 else {
                throw .damaged(path: path, reason: "it is not a number")
            }
            stored = value
        }
        let epoch = max(stored + 1, min(unixTime, Self.latestTime))
        try files.write(AccountFile.epoch, Array("\(epoch)\n".utf8))
        return epoch
    }

    /// The replay guard as it was saved; empty when none was.
    ///
    /// - Throws: ``AccountError/damaged(path:reason:)``; going on with an empty guard is then the caller's decision.
    package func loadReplayGuard() throws(AccountError) -> ReplayGuard {
        let files = try openExisting()
        guard let bytes = try files.read(AccountFile.replay) else { return ReplayGuard() }
        guard let guarded = bytes.withUnsafeBytes({ ReplayGuard(decoding: Array($0)) }) else {
            throw .damaged(path: folder.appending(AccountFile.replay), reason: "it is not what Baton wrote")
        }
        return guarded
    }

    /// Saves the replay guard; see ``ReplayGuard/saveNeed`` for when.
    package func save(_ replayGuard: ReplayGuard) throws(AccountError) {
        try openExisting().write(AccountFile.replay, replayGuard.encoded())
    }

    func openExisting() throws(AccountError) -> AccountFolder {
        guard let files = try AccountFolder.open(folder) else { throw .noAccount }
        return files
    }
}
