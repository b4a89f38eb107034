// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import CLinux
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

/// A file system on a file, of which an image can be taken as a power cut would leave it.
struct LoopDisk {
    let scratch: ScratchFolder

    static let isAvailable =
        DocumentFixture.isRoot && access("/sbin/mkfs.ext4", X_OK) == 0
        && access("/dev/loop-control", R_OK | W_OK) == 0

    let image: FilePath

    /// - Parameters:
    ///   - folder: where the image is, if not in the scratch folder.
    ///   - type: of the file system; ext3 cannot reserve room.
    init(_ scratch: ScratchFolder, size: Int, in folder: FilePath? = nil, type: String = "ext4") throws {
        self.scratch = scratch
        image = (folder ?? scratch.filePath).appending("image")
        try DocumentFixture.write([], to: image)
        let path = image.string
        try SystemCalls.call { truncate(path, size) }
        try Self.run(["mkfs.\(type)", "-q", "-F", path])
    }

    /// What is on the disk at this moment, without what is in memory still.
    func cutPower() throws -> LoopImage {
        let copy = scratch.filePath.appending("after the power cut")
        try Self.run(["cp", "--sparse=always", image.string, copy.string])
        return try LoopImage(copy, at: try scratch.makeFolder("after"), in: scratch)
    }

    func mount() throws -> LoopImage { try mount(at: try scratch.makeFolder("disk")) }

    func mount(at path: FilePath) throws -> LoopImage { try LoopImage(image, at: path, in: scratch) }

    static func run(_ command: [String]) throws {
        let ending = try ChildProcess.run(command, output: .inherited).ending
        try #require(ending == .exited(0), "\(command)")
    }
}

/// An image, mounted for the length of a test.
struct LoopImage: ~Copyable {
    let path: FilePath
    /// Removed behind the unmounting.
    private let scratch: ScratchFolder

    init(_ image: FilePath, at path: FilePath, in scratch: ScratchFolder) throws {
        self.path = path
        self.scratch = scratch
        try LoopDisk.run(["mount", "-o", "loop", image.string, path.string])
    }

    deinit {
        umount2(path.string, 0)
    }
}
