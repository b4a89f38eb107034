// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
package import SystemPackage

/// Confinement of a thread to some folders by the kernel's Landlock, which binds one thread and
/// cannot be taken back.
///
/// It stands behind everything that the code does by itself (one component of a name, `openat2` beneath one folder, no
/// links): should any of that be wrong, the kernel still lets the thread reach nothing else.
package enum Landlock {
    /// Kinds of access to files, by the kernel's numbers.
    struct Access: OptionSet {
        let rawValue: UInt64

        static let writeFile = Access(rawValue: 1 << 1)
        static let readFile = Access(rawValue: 1 << 2)
        static let readFolder = Access(rawValue: 1 << 3)
        static let removeFolder = Access(rawValue: 1 << 4)
        static let removeFile = Access(rawValue: 1 << 5)
        static let makeFolder = Access(rawValue: 1 << 7)
        static let makeFile = Access(rawValue: 1 << 8)
        static let makeLink = Access(rawValue: 1 << 12)
        static let truncate = Access(rawValue: 1 << 14)

        /// All that a document may need in its destination: no devices, pipes and sockets, and nothing is executed.
        static let receiving: Access = [
            .readFile, .writeFile, .readFolder, .makeFile, .makeFolder, .makeLink, .removeFile, .removeFolder,
            .truncate,
        ]
        /// Access that records and journals of unfinished documents need.
        static let recording: Access = [.readFile, .writeFile, .makeFile, .removeFile, .truncate]

        /// Everything that a version can deny.
        static func all(inVersion version: Int) -> Access {
            // Version 1 knows 13 kinds; 2, 3 and 5 added one each.
            let count = 13 + (version >= 2 ? 1 : 0) + (version >= 3 ? 1 : 0) + (version >= 5 ? 1 : 0)
            return Access(rawValue: (1 << UInt64(count)) - 1)
        }
    }

    /// Binding and connecting of TCP sockets: version 4.
    private static let network: UInt64 = 0b11
    /// Abstract Unix sockets of others, and signals to them: version 6.
    private static let scopes: UInt64 = 0b11

    /// The version of this kernel's interface, 1 to 7 as of Linux 6.18.
    ///
    /// - Throws: what a kernel says that was built without, is older than Linux 5.13, or has it switched off.
    package static func version() throws(Errno) -> Int {
        Int(try SystemCalls.kernel { baton_landlock_version() })
    }

    /// Confines the calling thread, and what it makes, for good: to a destination and to the folder of the records, to
    /// reading what is in folders that the user named, and to no network if the kernel can.
    ///
    /// Call it only on a ``BatonEventLoop/PrivateThread``. Open descriptors stay usable, so each folder is given as
    /// one.
    ///
    /// - Parameter version: the version of the interface to use; nil, the default, for the newest.
    static func confineThread(
        receivingIn destination: borrowing OwnedDescriptor, recordingIn records: borrowing OwnedDescriptor,
        readingIn copies: [OpenEntry] = [], version wanted: Int? = nil
    ) throws(Errno) {
        let version = min(try version(), wanted ?? .max)
        let all = Access.all(inVersion: version)
        let rules = OwnedDescriptor(
            takingOwnershipOf: try SystemCalls.kernel {
                baton_landlock_create(all.rawValue, version >= 4 ? network : 0, version >= 6 ? scopes : 0)
            })
        let (number, destination, records) = (rules.rawValue, destination.rawValue, records.rawValue)
        try SystemCalls.kernel {
            baton_landlock_allow_beneath(number, destination, Access.receiving.intersection(all).rawValue)
        }
        try SystemCalls.kernel {
            baton_landlock_allow_beneath(number, records, Access.recording.intersection(all).rawValue)
        }
        for copy in copies {
            let folder = copy.descriptor.rawValue
            try SystemCalls.kernel {
                baton_landlock_allow_beneath(number, folder, Access.readFile.intersection(all).rawValue)
            }
        }
        try SystemCalls.kernel { baton_landlock_restrict_thread(number) }
    }
}
