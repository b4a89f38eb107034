// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import BatonTransport
import Foundation
import Testing

extension ScratchFolder {
    fileprivate func make(_ name: String, mode: Int) throws {
        try FileManager.default.createDirectory(atPath: path + "/" + name, withIntermediateDirectories: true)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path + "/" + name)
    }

    fileprivate func mode(_ name: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path + "/" + name)[.posixPermissions] as? Int
    }

    /// The reason why a folder cannot be used.
    fileprivate func refusal(_ name: String, _ kind: HomeFolder.Kind) throws -> String? {
        do throws(HomeFolderError) {
            try HomeFolder.prepare(path + "/" + name, kind)
            return nil
        } catch {
            return error.reason
        }
    }
}

/// The folders of a home. Folders of other users, and targets of links, are not touched.
@Suite("Folders of a home")
struct HomeFolderTests {
    @Test(
        "A missing folder is made for this user alone",
        arguments: [HomeFolder.Kind.secret, .configuration])
    func made(_ kind: HomeFolder.Kind) throws {
        let scratch = try ScratchFolder("home")
        defer { scratch.remove() }
        #expect(try scratch.refusal("a/b", kind) == nil)
        #expect(try scratch.mode("a/b") == 0o700)
    }

    @Test("A folder for secrets is closed to others; a folder of settings is unchanged")
    func closed() throws {
        let scratch = try ScratchFolder("home")
        defer { scratch.remove() }
        for (name, mode) in [("state", 0o777), ("config", 0o755), ("shared", 0o775)] {
            try scratch.make(name, mode: mode)
        }
        #expect(try scratch.refusal("state", .secret) == nil)
        #expect(try scratch.mode("state") == 0o700)
        #expect(try scratch.refusal("config", .configuration) == nil)
        #expect(try scratch.mode("config") == 0o755)
        #expect(try scratch.refusal("shared", .configuration)?.contains("others may write to it: chmod go-w") == true)
        #expect(try scratch.mode("shared") == 0o775)
    }

    @Test("The target of a symbolic link is not changed, and not used for secrets")
    func link() throws {
        let scratch = try ScratchFolder("home")
        defer { scratch.remove() }
        try scratch.make("elsewhere", mode: 0o755)
        try FileManager.default.createSymbolicLink(atPath: scratch.path + "/link", withDestinationPath: "elsewhere")
        #expect(try scratch.refusal("link", .configuration) == nil)
        let refusal = try scratch.refusal("link", .secret)
        #expect(refusal?.contains("it has to be a folder, and not a symbolic link") == true)
        #expect(try scratch.mode("elsewhere") == 0o755)
    }

    @Test(
        "A folder of another user is refused", .enabled(if: geteuid() == 0, "only root can give a folder away"),
        arguments: [HomeFolder.Kind.secret, .configuration])
    func foreign(_ kind: HomeFolder.Kind) throws {
        let scratch = try ScratchFolder("home")
        defer { scratch.remove() }
        try scratch.make("foreign", mode: 0o700)
        #expect(chown(scratch.path + "/foreign", 65_534, 65_534) == 0)
        #expect(try scratch.refusal("foreign", kind)?.contains("it belongs to another user") == true)
    }
}
