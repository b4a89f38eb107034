// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
public import FoundationEssentials
import Glibc
import SystemPackage

/// The content of a document, on this device or on its way.
extension Document {
    /// Bytes of the file. Bytes that have not arrived are fetched ahead of the rest.
    ///
    /// - Parameters:
    ///   - offset: the first byte.
    ///   - length: the most bytes; all of them are in memory.
    ///   - path: a file in the document, if that is a folder: names with `/` between them. `nil`, the default: the
    ///     document itself, which is a file.
    /// - Returns: fewer bytes than asked for only at the file's end. Until the file has arrived, all bytes are of one
    ///   version.
    /// - Throws: ``UserActivityError``: `notContinued` if the activity was released before the file had arrived,
    ///   `connectionUnavailable`, `handoffFailed` and other codes of the origin, also for a missing file.
    public func read(
        at offset: UInt64, length: Int, of path: String? = nil
    ) async throws(UserActivityError) -> Data {
        try await read(at: offset, length: length, ofFile: path.map { Array($0.utf8) })
    }

    /// Bytes of a file in a folder, whose path need not be UTF-8.
    ///
    /// - Parameters:
    ///   - offset: the first byte.
    ///   - length: the number of bytes.
    ///   - path: the bytes of the path, names with `/` between them.
    public func read(
        at offset: UInt64, length: Int, ofPath path: some Collection<UInt8>
    ) async throws(UserActivityError) -> Data {
        try await read(at: offset, length: length, ofFile: Array(path))
    }

    private func read(
        at offset: UInt64, length: Int, ofFile path: [UInt8]?
    ) async throws(UserActivityError) -> Data {
        guard length >= 0 else { throw UserActivityError(.invalid, "a length is not negative") }
        let separator = UInt8(ascii: "/")
        let names = path?.split(separator: separator, omittingEmptySubsequences: false) ?? []
        guard !names.contains(where: Self.leadsElsewhere) else {
            let shown = String(decoding: path ?? [], as: UTF8.self)
            throw UserActivityError(.invalid, "\(shown) is no path of a file in a folder")
        }
        if let fileURL {
            let file = path.map { URL(filePathBytes: fileURL.filePathBytes + [separator] + $0) } ?? fileURL
            return try await LocalReader.read(file, at: offset, length: length)
        }
        guard let handoff = activity.handoff, !activity.isInvalidated else {
            throw UserActivityError(.notContinued, "the activity was let go before its document had arrived")
        }
        do {
            return try await handoff.readDocument(at: offset, length: length, of: path ?? [])
        } catch {
            // The document may have arrived meanwhile, and its origin may be gone.
            guard fileURL != nil else { throw UserActivityError(error) }
            return try await read(at: offset, length: length, ofFile: path)
        }
    }

    /// Whether a name in a path is none of a file or folder, but leads out of the folder or nowhere.
    private static func leadsElsewhere(_ name: ArraySlice<UInt8>) -> Bool {
        name.isEmpty || name.elementsEqual(".".utf8) || name.elementsEqual("..".utf8)
    }

    /// Waits until the file is on this device.
    ///
    /// - Returns: the file's URL. ``UserActivity/userInfo`` has the same URL from then on. A name that is not UTF-8 is
    ///   percent-encoded, and `path(percentEncoded: true)` returns it.
    /// - Throws: ``UserActivityError`` with the reason why it does not come; `userCancelled` if the task was cancelled,
    ///   `invalid` if the user named no folder for it, so that it can only be read.
    public func arrived() async throws(UserActivityError) -> URL {
        if let fileURL { return fileURL }
        guard let arrival = activity.handoff?.arrival else {
            throw UserActivityError(.notContinued, "the document has no file")
        }
        return try await arrival.wait()
    }
}

/// Reads files of this device, because disks block: on one thread for all documents of the process, which starts with
/// the first read and stays.
private actor LocalReader {
    private static let shared = Lock<LocalReader?>(nil)

    private nonisolated let executor: BlockingExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private init() throws(Errno) {
        executor = try BlockingExecutor(name: "baton-reading")
    }

    static func read(_ url: URL, at offset: UInt64, length: Int) async throws(UserActivityError) -> Data {
        do {
            let reader = try shared.withLock { (shared) throws(Errno) in
                let reader = if let shared { shared } else { try LocalReader() }
                shared = reader
                return reader
            }
            return try await reader.read(url, at: offset, length: length)
        } catch {
            throw UserActivityError(.handoffFailed, "\(url.fileName) cannot be read: \(error)")
        }
    }

    private func read(_ url: URL, at offset: UInt64, length: Int) throws -> Data {
        guard let start = Int(exactly: offset) else { return Data() }
        let path = FilePath(platformString: url.filePathBytes.map { CChar(bitPattern: $0) } + [0])
        let file = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .nonBlocking])
        return try file.closeAfter {
            // The buffer is never larger than the file.
            var data = Data(count: min(length, max(0, Int(try file.stat().size) - start)))
            var count = 0
            while count < data.count {
                let got = try data.withUnsafeMutableBytes { bytes in
                    try file.read(
                        fromAbsoluteOffset: Int64(start + count),
                        into: UnsafeMutableRawBufferPointer(rebasing: bytes[count...]))
                }
                if got == 0 { break }
                count += got
            }
            return data.prefix(count)
        }
    }
}
