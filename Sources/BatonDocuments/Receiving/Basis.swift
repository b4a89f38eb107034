// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// A file that is open to be built upon.
final class BasisFile: Sendable {
    /// Holes smaller than this are read as the zeros that they are: a chunk.
    static let holeSize = UInt64(ChunkLayout.chunkSize)
    /// The most stretches of one file, of which each is a basis: 65,536. What comes after is not built upon.
    static let stretchLimit = Bases.limit
    let descriptor: OwnedDescriptor
    let size: UInt64

    /// - Parameter limit: what is behind these bytes is not looked at.
    init(_ descriptor: consuming OwnedDescriptor, limit: UInt64 = .max) throws(Errno) {
        size = min(limit, UInt64(clamping: try SystemCalls.status(of: descriptor).st_size))
        self.descriptor = descriptor
    }

    /// Opens a file of a folder: never through a link, never outside of the folder, and nothing but a regular file.
    ///
    /// - Returns: nil where there is none. A pipe or device is not opened to find out what it is.
    convenience init?(
        _ path: some Collection<UInt8>, beneath folder: borrowing OwnedDescriptor, limit: UInt64 = .max
    ) {
        guard Self.isFile(path, beneath: folder) else { return nil }
        // Another one may have taken its place: O_NONBLOCK keeps a pipe from blocking, O_NOCTTY a terminal from taking
        // over.
        let flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW
        guard
            let opened = try? SystemCalls.open(path, beneath: folder, flags),
            let status = try? SystemCalls.status(of: opened), status.st_mode & S_IFMT == S_IFREG
        else { return nil }
        try? self.init(opened, limit: limit)
    }

    private static func isFile(_ path: some Collection<UInt8>, beneath folder: borrowing OwnedDescriptor) -> Bool {
        let number = folder.rawValue
        let found = try? SystemCalls.withName(path) { (path) throws(Errno) in
            try SystemCalls.kernel { baton_look_beneath(number, path) }
        }
        guard let found else { return false }
        let looked = OwnedDescriptor(takingOwnershipOf: found)
        guard let status = try? SystemCalls.status(of: looked) else { return false }
        return status.st_mode & S_IFMT == S_IFREG
    }

    /// The stretches that are no large holes, each from one multiple of a chunk to another: a hole is not read, however
    /// large it is. All of the file where the file system cannot tell.
    ///
    /// - Parameter limit: how many at the most; what comes after is left out.
    func stretches(limit: Int = stretchLimit) -> [Range<UInt64>] {
        let number = descriptor.rawValue
        var stretches: [Range<UInt64>] = []
        var next: UInt64 = 0
        while next < size {
            guard stretches.count < limit else { break }
            let data = baton_next_data(number, Int64(next))
            guard data >= 0 else {
                if -data != Int64(ENXIO) { stretches.append(next..<size) }
                break
            }
            let hole = baton_next_hole(number, data)
            let start = max(next, UInt64(data) / Self.holeSize * Self.holeSize)
            guard hole > data, start < size else { break }
            let end = min(size, (UInt64(hole) + Self.holeSize - 1) / Self.holeSize * Self.holeSize)
            if let last = stretches.last, last.upperBound == start {
                stretches[stretches.count - 1] = last.lowerBound..<end
            } else {
                stretches.append(start..<end)
            }
            next = end
        }
        return stretches
    }
}

/// Where files are looked up that a document is built upon.
enum BasisRoot {
    /// One file, for all of the document.
    case file(BasisFile)
    /// A folder with files under the document's paths, of which those of fewer bytes than so many do not count.
    case folder(BasisFolder, leastSize: UInt64)
    /// An older part, and the paths of its files.
    case part(BasisFolder, [[UInt8]])

    /// The file of this root that a file of the document is built upon.
    ///
    /// - Parameter file: the number in the layout, or among the paths of an older part; nil for all of the document.
    func open(_ file: Int?, of tree: DocumentTree) -> BasisFile? {
        switch self {
        case .file(let basis): return basis
        case .folder(let folder, let leastSize):
            guard let path = file.map({ tree.entry(ofFile: $0).path }),
                // Where a single file is looked up, it has its name.
                let basis = BasisFile(path.isRoot ? tree.label.bytes : path.bytes, beneath: folder.descriptor)
            else { return nil }
            return basis.size >= leastSize ? basis : nil
        case .part(let folder, let paths): return file.flatMap { BasisFile(paths[$0], beneath: folder.descriptor) }
        }
    }

    /// Whether each file of the document has a file of its own here.
    var hasFiles: Bool {
        switch self {
        case .file, .part: false
        case .folder: true
        }
    }
}

/// An open folder with files to build upon.
final class BasisFolder: Sendable {
    let descriptor: OwnedDescriptor

    init(_ descriptor: consuming OwnedDescriptor) {
        self.descriptor = descriptor
    }
}
