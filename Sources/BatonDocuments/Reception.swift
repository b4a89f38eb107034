import BatonEventLoop
import BatonProtocol
import Glibc
import SystemPackage

/// What touches the disk while a document is received, on a thread of its own that can reach the destination and nothing
/// else.
///
/// The thread confines itself (``Landlock``) before it makes the part file, and with that before the other device is
/// asked for a byte. Every call waits for the thread, so it is made where blocking is allowed; ``discardLater()`` alone
/// does not wait.
final class Reception: @unchecked Sendable {  // reason: after `init`, `verifier` and `part` belong to `thread`
    /// The thread that was confined.
    let thread: PrivateThread

    private let label: DocumentLabel
    private var verifier: ChunkVerifier
    private var part: PartFile?

    /// Makes the thread, confines it, and makes the part file on it.
    ///
    /// - Throws: `busy` where there is no thread to be had, `notConfinable`, and what making the part file throws.
    init(
        of label: DocumentLabel, _ verifier: consuming ChunkVerifier, in folder: DestinationFolder,
        ledger: PartFileLedger
    ) throws(DocumentError) {
        do {
            thread = try PrivateThread(name: "baton-confined")
        } catch {
            throw DocumentError(.busy, "a document", underlyingError: error)
        }
        self.label = label
        let size = verifier.layout.documentSize
        self.verifier = verifier
        // The thread itself cannot read it any more.
        let umask = ProcessUmask.current
        try thread.perform { () throws(DocumentError) in
            let records = try ledger.openFolder()
            do throws(Errno) {
                try folder.confineThread(recordingIn: records)
            } catch {
                throw DocumentError(.notConfinable, folder.path.displayed, underlyingError: error)
            }
            self.part = try PartFile(for: label, size: size, in: folder, ledger: ledger, umask: umask)
        }
    }

    /// Verifies and writes the next bytes.
    ///
    /// - Returns: bytes of the document that are verified and written by now.
    func write(_ bytes: Buffer) throws(DocumentError) -> UInt64 {
        try thread.perform { () throws(DocumentError) in
            let part = try self.requirePart()
            try bytes.withBytes { (bytes) throws(DocumentError) in
                try self.verifier.receive(bytes) { (event) throws(DocumentError) in
                    switch event {
                    case .content(let offset, let content): try part.write(content, at: offset)
                    case .verified: break
                    }
                }
            }
            return self.verifier.verifiedByteCount
        }
    }

    /// Puts the document in place, or throws what is wrong; then the part file is still there, to be discarded.
    func commit(permissions: UInt16) throws(DocumentError) -> FilePath {
        try thread.perform { () throws(DocumentError) in
            let part = try self.requirePart()
            try self.verifier.finish()
            return try part.commit(permissions: permissions)
        }
    }

    /// Removes the part file, unless it was committed.
    func discard() {
        thread.perform { self.part?.discard() }
    }

    /// The same, without waiting for it.
    func discardLater() {
        thread.submit { self.part?.discard() }
    }

    private func requirePart() throws(DocumentError) -> PartFile {
        guard let part else { throw DocumentError(.cancelled, label.description) }
        return part
    }
}
