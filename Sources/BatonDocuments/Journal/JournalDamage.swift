// SPDX-License-Identifier: Apache-2.0

/// Where a journal cannot be read, looked for before anything of it is believed.
struct JournalDamage {
    /// Behind the last entry that was written: what is zero from there on is room that a power cut left empty.
    private(set) var writtenEnd: UInt64 = 0
    /// Behind the last damaged entry, which may have said that what those before it say does not hold any more; 0 where
    /// there is none.
    private(set) var doubtEnd: UInt64 = 0

    /// Takes the bytes of the next entry.
    mutating func take(_ bytes: ArraySlice<UInt8>, at index: UInt64) {
        guard bytes.contains(where: { $0 != 0 }) else { return }
        if index > writtenEnd { doubtEnd = index }
        writtenEnd = index + 1
        if JournalEntry(bytes, at: index) == nil { doubtEnd = index + 1 }
    }
}
