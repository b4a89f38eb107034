import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// What is known of a file system.
struct FileSystem {
    /// A number that it keeps, whatever the number of the device on which it is found; nil where it tells none.
    let number: UInt64?

    /// The one that an open file or folder is on.
    init(of file: borrowing OwnedDescriptor) {
        let number = baton_file_system_number(file.rawValue)
        self.number = number == 0 ? nil : number
    }

    /// The one that a file or folder is on that can be opened for reading; blocks.
    init(at path: FilePath) throws(Errno) {
        self.init(of: try SystemCalls.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY))
    }
}
