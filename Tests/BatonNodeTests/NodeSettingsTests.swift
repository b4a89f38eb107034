// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

import struct SystemPackage.FilePath

@testable import BatonNode

@Suite("The settings of the node")
struct NodeSettingsTests {
    private static func parse(_ text: String) -> Result<UInt16?, ConfigurationError> {
        Result { () throws(ConfigurationError) in try NodeSettings(parsing: Array(text.utf8)).port }
    }

    @Test("a port is read, with comments and spaces around it")
    func parsing() throws {
        for text in ["", "\n", "# port=1024\n"] { #expect(Self.parse(text) == .success(nil)) }
        #expect(try NodeSettings(parsing: Array("# Gr".utf8) + [0xFC, 0x0A] + Array("port=24747".utf8)).port == 24_747)
        for text in ["port=24747", "port=24747\n", " port = 24747 \r\n", "# mine\n\nport=24747\n#"] {
            #expect(Self.parse(text) == .success(24_747))
        }
    }

    @Test(
        "a mistake is reported with its place",
        arguments: [
            ("port", 1), ("\n  prot=24747", 2), ("port=80", 1), ("port=65536", 1), ("port=", 1), ("port=-1", 1),
            ("port=2000\nport=2001", 2),
        ])
    func mistakes(_ text: String, _ line: Int) {
        guard case .failure(let error) = Self.parse(text) else {
            Issue.record("\(text) was read")
            return
        }
        #expect(error.line == line)
    }

    @Test("a new port replaces the old one, and everything else stays")
    func writing() throws {
        let folder = try ScratchFolder("settings")
        defer { folder.remove() }
        let path = folder.filePath.appending("config").appending("node")
        func content() throws -> String { try String(contentsOfFile: path.string, encoding: .utf8) }
        #expect(try NodeSettings.read(path).port == nil)
        try NodeSettings.setPort(24_747, in: path)
        #expect(try content() == "port=24747\n")
        try Data("# mine\nport=24747\n# end".utf8).write(to: URL(filePath: path.string))
        try NodeSettings.setPort(24_748, in: path)
        #expect(try content() == "# mine\nport=24748\n# end\n")
        try Data("port=1\n".utf8).write(to: URL(filePath: path.string))
        #expect(throws: ConfigurationError.self) { try NodeSettings.setPort(24_747, in: path) }
        #expect(try content() == "port=1\n")
    }
}
