// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BatonMessages
import Foundation
import SwiftProtobuf
import Testing

@testable import Baton
@testable import BatonCLI

/// The articles of the command say what it prints, and how it ends.
@Suite("The articles of the command")
struct DocumentationTests {
    private static func article(_ name: String) throws -> String {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../../Sources/BatonCLI/BatonCLI.docc/\(name).md")
        return try String(contentsOf: file, encoding: .utf8)
    }

    @Test("The example of an activity is what is printed of it")
    func activity() throws {
        let summary = WireActivitySummary.with {
            $0.id = Data([
                0x8A, 0x9B, 0x77, 0xE1, 0xC0, 0xDE, 0x4F, 0x0F, 0x8A, 0x9B, 0x77, 0xE1, 0xC0, 0xDE, 0x4F, 0x0F,
            ])
            $0.kind = .document
            $0.type = "public.data"
            $0.title = "film.bin"
            $0.documentSize = 1 << 30
            $0.since = 1_795_253_400
        }
        let listed = ListedActivity(summary, device: "laptop", deviceID: "pcg6kclprnjq534xuqavz75xz7vsmdbd")
        let example = try Self.article("JSONOutput").split(separator: "\n").first { $0.hasPrefix("{") }
        #expect(example.map(String.init) == listed.members.line)
    }

    @Test("The table of commands has each command")
    func commands() throws {
        let article = try Self.article("BatonCLI")
        for command in BatonCommand.configuration.subcommands {
            let name = command.configuration.commandName ?? ""
            #expect(article.contains("`\(name)`"), "\(name)")
        }
    }

    @Test("The table of exit codes has each code")
    func exitCodes() throws {
        let codes = try Self.article("ExitCodesAndFiles").split(separator: "\n").compactMap { line in
            let cells = line.split(separator: "|")
            return cells.first.flatMap { Int32($0.trimmingCharacters(in: .whitespaces)) }
        }
        #expect(codes == ExitStatus.allCases.map(\.rawValue))
    }
}
