// SPDX-License-Identifier: Apache-2.0

package import SystemPackage

/// Why a document could not be offered, read, received or put in place.
///
/// It is made for two readers: `code` for programs (stable, one per cause), `message` for people (a plain sentence or
/// two that say what is wrong and what to do).
package struct DocumentError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The cause. The raw values are stable: they are printed by `--json` and may be written to logs.
    package enum Code: String, Sendable, Hashable, CaseIterable {
        case missing
        /// The document may not be read by this user.
        case unreadable
        /// The document is a device, a pipe, a socket, or a file that has no size.
        case notRegularFile
        /// The path, such as `/`, ends in no name that the document could have on another device.
        case noName
        case isFolder
        /// The folder has more entries, or longer names in all, than a document may have.
        case tooManyEntries
        /// Something in the folder lies deeper, or has a longer path, than a document may have.
        case tooDeep
        /// The document was edited, replaced, cut short or extended while it was offered or read.
        case sourceChanged
        /// A range of chunks was asked for that the document does not have.
        case badRange
        /// Something of that name is in the destination folder already. Nothing was overwritten.
        case destinationExists
        /// The destination folder does not exist or is not a folder.
        case destinationMissing
        /// The destination folder may not be written to by this user, or is on a read-only file system.
        case destinationNotWritable
        /// The destination's file system can name a file only in a way that might replace another one.
        case destinationUnsuitable
        /// The destination's file system or the user's quota has no room for the document.
        case destinationFull
        /// The name that the other device gave is not one that a file can have here.
        case badName
        /// The document is larger than the destination (or any file system) can hold in one file.
        case tooLarge
        /// A chunk did not match its checksum.
        case checksumMismatch
        /// The bytes ended before the document was whole.
        case incomplete
        /// More bytes came than the document has.
        case excess
        /// An older copy that the document is built upon changed meanwhile.
        case basisChanged
        /// The bytes are no record of a chunk.
        case badRecord
        /// Reading from the disk failed.
        case readFailed
        /// Writing to the disk failed.
        case writeFailed
        /// The state folder, where unfinished files are recorded, cannot be used.
        case stateUnavailable
        /// The kernel refused to confine the thread that would write to the destination.
        case notConfinable
        /// The kernel has not what receiving a document safely needs.
        case systemUnsuitable
        /// A limit on concurrent transfers was reached, or the system has no thread, descriptor or memory to give.
        case busy
        /// The transfer was cancelled, or used after its end.
        case cancelled
    }

    package let code: Code
    /// The file or folder that it is about, for people: control characters are escaped.
    package let subject: String
    /// The error of the system, if the system refused.
    package let underlyingError: Errno?

    /// An error about the thing that `subject` names (already fit to be shown).
    package init(_ code: Code, _ subject: String, underlyingError: Errno? = nil) {
        self.code = code
        self.subject = subject
        self.underlyingError = underlyingError
    }

    /// The fault and the next step, in plain sentences.
    package var message: String {
        switch code {
        case .missing:
            "'\(subject)' does not exist. Check the path."
        case .unreadable:
            "'\(subject)' cannot be read\(reason). Change its permissions, or offer it as a user who may read it."
        case .notRegularFile:
            "'\(subject)' is a device, a pipe, a socket or a file without a size. Save its content to a file first."
        case .noName:
            "'\(subject)' has no name that it could have on another device. Offer a file or a folder in it."
        case .isFolder:
            "'\(subject)' is a folder, and only a file can be taken here. Name a file in it, or offer all of it."
        case .tooManyEntries:
            "'\(subject)' has more than \(DocumentTree.entryLimit) entries. Pack it into an archive and offer that."
        case .tooDeep:
            "'\(subject)' lies more than \(EntryPath.maximumDepth) folders deep, or its path has more than "
                + "\(EntryPath.maximumLength) bytes. Pack the folder into an archive and offer that."
        case .sourceChanged:
            "'\(subject)' changed while it was being sent. Save it, and accept it again."
        case .badRange:
            "A part of '\(subject)' was asked for that does not exist. Update Baton on the other device."
        case .destinationExists:
            "'\(subject)' exists already and was not overwritten. Move it away, or accept into another folder."
        case .destinationMissing:
            "The folder '\(subject)' does not exist. Make it, or accept into another folder."
        case .destinationNotWritable:
            "The folder '\(subject)' cannot be written to\(reason). Accept into another folder."
        case .destinationUnsuitable:
            "The file system of the folder '\(subject)' cannot name a file without risking to replace another. "
                + "Accept into a folder on another file system."
        case .destinationFull:
            "There is not enough room for '\(subject)'\(reason). Free some space, or accept into another folder."
        case .badName:
            "The other device calls the document '\(subject)', which no file can be called here. Rename it there."
        case .tooLarge:
            "'\(subject)' is larger than a file can be here. Accept it into a folder on another file system."
        case .checksumMismatch:
            "'\(subject)' arrived damaged. Check the disks of both devices. Accept it again: what came intact is kept."
        case .incomplete:
            "'\(subject)' did not arrive whole. Accept it again: it goes on from what has come."
        case .excess:
            "The other device sent more than '\(subject)' has. Update Baton there, and accept it again."
        case .basisChanged:
            "The older copy that '\(subject)' is built upon changed. Accept it again."
        case .badRecord:
            "What came of '\(subject)' cannot be read. Update Baton on both devices, and accept it again."
        case .readFailed:
            "Reading '\(subject)' failed\(reason). Check the disk it is on."
        case .writeFailed:
            "Writing '\(subject)' failed\(reason). Check the disk, or accept into another folder."
        case .stateUnavailable:
            "The state folder '\(subject)' cannot be used\(reason). Check its permissions and the disk it is on."
        case .notConfinable:
            "Writing could not be confined to the folder '\(subject)'\(reason), so nothing was written. "
                + "Accept into a folder on another file system."
        case .systemUnsuitable:
            "This system has not what receiving documents safely needs\(reason), so nothing was received. "
                + "It needs \(subject)."
        case .busy:
            "Too many documents are on their way at once\(reason). Try again when one of them is done."
        case .cancelled:
            "The transfer of '\(subject)' was cancelled."
        }
    }

    package var description: String { message }

    private var reason: String {
        guard let underlyingError else { return "" }
        return " (\(underlyingError.description.lowercased()))"
    }
}
