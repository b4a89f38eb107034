// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// Properties of a file system.
struct FileSystem: Sendable {
    /// A number that it keeps, whatever the number of the device on which it is found; nil where it tells none.
    let number: UInt64?
    /// Whether a file has the same inode number for as long as it exists.
    ///
    /// FAT and exFAT have no such numbers: Linux makes one up whenever it looks at a file that it has forgotten, after
    /// the disk was put in again and when memory is short. Most daemons of FUSE leave it to the kernel likewise. As
    /// long as a file is open its number stays in any case.
    let keepsInodes: Bool

    /// The one that an open file or folder is on.
    init(of file: borrowing OwnedDescriptor) {
        let number = baton_file_system_number(file.rawValue)
        self.number = number == 0 ? nil : number
        keepsInodes = ![0x4D44, 0x2011_BAB0, 0x6573_5546].contains(baton_file_system(file.rawValue))
    }

    /// The one that a file or folder is on that can be opened for reading; blocks.
    init(at path: FilePath) throws(Errno) {
        self.init(of: try SystemCalls.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY))
    }

    /// The inode by which a part is known again. Where inodes are not kept it is always 1, and a part is known by its
    /// random name alone.
    func number(of status: stat) -> UInt64 { keepsInodes ? UInt64(status.st_ino) : 1 }
}
