// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Glibc
import Testing

@testable import BatonTransport

@Suite("Home")
struct HomeTests {
    @Test("Without XDG_RUNTIME_DIR the socket is in the user's run-time folder, if that is the user's alone")
    func runtimeFolder() throws {
        let scratch = try ScratchFolder("users")
        defer { scratch.remove() }
        let users = scratch.path
        let own = "\(users)/\(geteuid())"
        func socket(_ runtime: String? = nil) throws -> String {
            var environment = ["HOME": "/home/user"]
            environment["XDG_RUNTIME_DIR"] = runtime
            return try Home(environment: environment, runtimeFolders: users).socketPath
        }
        let inState = "/home/user/.local/state/baton/run/node.socket"
        #expect(try socket() == inState)
        try FileManager.default.createDirectory(atPath: own, withIntermediateDirectories: true)
        for (mode, place) in [(0o700, own + "/baton/node.socket"), (0o755, inState), (0o770, inState)] {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: own)
            #expect(try socket() == place)
            #expect(try socket("") == place)
            #expect(try socket("/run/other") == "/run/other/baton/node.socket")
        }
        // Neither a file nor a link is that folder.
        let elsewhere = users + "/elsewhere"
        try FileManager.default.moveItem(atPath: own, toPath: elsewhere)
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: elsewhere)
        try FileManager.default.createSymbolicLink(atPath: own, withDestinationPath: elsewhere)
        #expect(try socket() == inState)
        try FileManager.default.removeItem(atPath: own)
        #expect(FileManager.default.createFile(atPath: own, contents: nil, attributes: [.posixPermissions: 0o700]))
        #expect(try socket() == inState)
        try FileManager.default.removeItem(atPath: own)
        if geteuid() == 0 {
            try FileManager.default.moveItem(atPath: elsewhere, toPath: own)
            #expect(chown(own, 65534, 65534) == 0)
            #expect(try socket() == inState)
        }
    }

    @Test("BATON_HOME moves everything")
    func ownHome() throws {
        let home = try Home(environment: ["BATON_HOME": "/a", "XDG_RUNTIME_DIR": "/b", "HOME": "/c"])
        #expect(home.socketPath == "/a/run/node.socket" && home.stateFolder == "/a/state")
    }

    @Test("A home whose socket would have a path of more than 107 bytes is refused, with the way out")
    func longHome() throws {
        func home(_ length: Int) throws -> Home {
            try Home(environment: ["BATON_HOME": "/" + String(repeating: "x", count: length - 1)])
        }
        #expect(try home(91).socketPath.utf8.count == 107)
        let error = #expect(throws: HomeError.self) { try home(92) }
        #expect(error?.description.contains("set BATON_HOME or XDG_RUNTIME_DIR to a shorter folder") == true)
    }
}
