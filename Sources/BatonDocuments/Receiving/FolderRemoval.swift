// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage

/// Removes a folder with all that is in it: never through a link, never outside of it, and never across to another file
/// system that somebody has mounted there.
///
/// It holds a descriptor for each level. Every call blocks on the disk.
enum FolderRemoval {
    /// The most names that one removal takes away: ten times what a document can have. Somebody who makes files as fast
    /// as they are removed would keep it busy for ever.
    static let nameLimit = 10 * DocumentTree.entryLimit
    /// Levels below the folder: twice as many as a document has. What is deeper is none of it, and stays.
    private static let depthLimit = 2 * EntryPath.maximumDepth

    /// Removes a name and all that is in it.
    ///
    /// - Throws: what stood in the way, `directoryNotEmpty` beyond ``nameLimit`` and where it is too deep. What was
    ///   removed until then is gone.
    static func remove(_ name: [UInt8], from folder: borrowing OwnedDescriptor) throws(Errno) {
        var left = nameLimit
        try remove(name, from: folder, depth: 0, &left)
    }

    /// Removes all that is in a folder, and leaves the folder.
    ///
    /// - Throws: as above.
    static func removeContents(of folder: borrowing OwnedDescriptor) throws(Errno) {
        var left = nameLimit
        try removeContents(of: folder, depth: 0, &left)
    }

    private static func removeContents(
        of folder: borrowing OwnedDescriptor, depth: Int, _ left: inout Int
    ) throws(Errno) {
        guard depth < depthLimit else { throw .directoryNotEmpty }
        try SystemCalls.restoreAccess(to: folder)
        let number = folder.rawValue
        while true {
            try SystemCalls.call { lseek(number, 0, SEEK_SET) }
            let names = try SystemCalls.names(in: folder, atLeast: 1)
            guard !names.isEmpty else { return }
            left -= names.count
            guard left >= 0 else { throw .directoryNotEmpty }
            for name in names { try remove(name, from: folder, depth: depth, &left) }
        }
    }

    private static func remove(
        _ name: [UInt8], from folder: borrowing OwnedDescriptor, depth: Int, _ left: inout Int
    ) throws(Errno) {
        do throws(Errno) {
            do throws(Errno) {
                return try SystemCalls.remove(name, from: folder, isFolder: false)
            } catch {
                guard error == .isDirectory else { throw error }
            }
            do throws(Errno) {
                return try SystemCalls.remove(name, from: folder, isFolder: true)
            } catch {
                guard error == .directoryNotEmpty || error == .fileExists else { throw error }
            }
            try removeContents(of: try SystemCalls.openOwnFolder(name, within: folder), depth: depth + 1, &left)
            try SystemCalls.remove(name, from: folder, isFolder: true)
        } catch .noSuchFileOrDirectory {}
    }
}
