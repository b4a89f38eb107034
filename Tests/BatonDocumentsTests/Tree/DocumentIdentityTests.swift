// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import CLinux
import Foundation
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Which document one is")
struct DocumentIdentityTests {
    @Test(
        "A disk that has another number when it comes back has the same documents",
        .enabled(if: LoopDisk.isAvailable, "it mounts a file system on a file, which needs root"))
    func otherDevice() throws {
        let disk = try LoopDisk(try ScratchFolder(), size: 8 << 20)
        let place = try disk.scratch.makeFolder("disk")
        func device(_ folder: FilePath) throws -> dev_t { try SystemCalls.status(at: folder).st_dev }
        func identities(_ folder: FilePath) throws -> [DocumentIdentity] {
            try ["folder", "report.pdf"].map { try DocumentScan.scan(folder.appending($0)).identity }
        }
        do {
            let mounted = try disk.mount(at: place)
            _ = try disk.scratch.makeFolder("disk/folder")
            try DocumentFixture.write([1, 2, 3], to: mounted.path.appending("report.pdf"))
        }
        // While both are mounted, no number is that of both.
        let before = try disk.mount(at: place)
        let after = try disk.cutPower()
        try #require(try device(before.path) != device(after.path))
        #expect(try identities(before.path) == identities(after.path))
        // Another disk is another one all the same.
        let other = try LoopDisk(try ScratchFolder(), size: 8 << 20).mount()
        try DocumentFixture.write([1, 2, 3], to: other.path.appending("report.pdf"))
        let stranger = try DocumentScan.scan(other.path.appending("report.pdf")).identity
        #expect(stranger.isOther(than: try identities(before.path)[1]))
    }
}
