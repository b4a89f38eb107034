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
        let paths = [place.appending("folder"), place.appending("report.pdf")]
        func identities() throws -> [DocumentIdentity] { try paths.map { try DocumentScan.scan($0).identity } }
        func device() throws -> Int { Int(try SystemCalls.status(at: place).st_dev) }
        let (before, number): ([DocumentIdentity], Int)
        do {
            let mounted = try disk.mount(at: place)
            _ = try disk.scratch.makeFolder("disk/folder")
            try DocumentFixture.write([1, 2, 3], to: mounted.path.appending("report.pdf"))
            (before, number) = (try identities(), try device())
        }
        // It takes the number that has become free.
        let other = try LoopDisk(try ScratchFolder(), size: 8 << 20).mount()
        let mounted = try disk.mount(at: place)
        try #require(try device() != number)
        #expect(try identities() == before)
        // Another disk is another one all the same.
        try DocumentFixture.write([1, 2, 3], to: other.path.appending("report.pdf"))
        let stranger = try DocumentScan.scan(other.path.appending("report.pdf")).identity
        #expect(stranger.isOther(than: before[1]) && mounted.path == place)
    }
}
