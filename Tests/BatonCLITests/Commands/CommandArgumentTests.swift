// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonDocuments
import BatonMessages
import BatonProtocol
import BatonTestSupport
import BatonTransport
import FoundationEssentials
import Subprocess
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonCLI

@Suite("Arguments that are not UTF-8")
struct CommandArgumentTests {
    @Test("Whatever bytes an argument has, it keeps, and no two become one")
    func roundTrip() {
        var random = SeededGenerator()
        var pool: [[UInt8]] = [
            [], [0xFF], [0xFE], Array("b2-".utf8) + [0xFF, 0xFE] + Array(".bin".utf8), [0xC3], [0xC3, 0xA9],
            Array("\u{10FF41}".utf8), Array("\u{10FFFF}".utf8), Array("\u{FFFD}".utf8), [0xED, 0xA0, 0x80],
            [0xC0, 0xAF],
            [0xF4, 0x90, 0x80, 0x80],
        ]
        pool += (0..<500).map { _ in random.bytes(Int.random(in: 0...12, using: &random)) }
        var texts: [String: [UInt8]] = [:]
        for bytes in pool {
            guard let argument = CommandArgument(bytes: bytes) else {
                #expect(bytes.isEmpty)
                continue
            }
            #expect(argument.bytes == bytes, "\(random)")
            let text = argument.encoded
            if let other = texts[text] { #expect(other == bytes, "\(random)") }
            texts[text] = bytes
        }
        #expect(CommandArgument(bytes: "Grüße 😀".utf8)?.encoded == "Grüße 😀")
        #expect(CommandArgument(bytes: [0x61, 0xFF])?.text == "a\u{FFFD}")
    }

    @Test("The words of a command keep their bytes, with a shell and without")
    func words() throws {
        let line = try #require(CommandArgument(bytes: Array("./".utf8) + [0xFF] + Array(" 'a ".utf8) + [0xFE, 0x27]))
        let command = try ServedCommand(line, throughShell: false)
        #expect(command.executable.bytes == Array("./".utf8) + [0xFF])
        #expect(command.arguments == [[0x61, 0x20, 0xFE]])
        #expect(try ServedCommand(line, throughShell: true).arguments == [Array("-c".utf8), line.bytes])
    }

    @Test("Paths are taken as bytes")
    func paths() throws {
        let name = try #require(CommandArgument(bytes: [0x61, 0xFF, 0x62])).encoded
        let accept = try AcceptCommand.parse(["--to", name, "--against", name, "--against=\(name)"])
        #expect(accept.to?.path.bytes == [0x61, 0xFF, 0x62])
        #expect(accept.against.map(\.path.bytes) == [[0x61, 0xFF, 0x62], [0x61, 0xFF, 0x62]])
        #expect(try OfferCommand.parse([name, "b"]).paths.map(\.path.bytes) == [[0x61, 0xFF, 0x62], [0x62]])
    }

    @Test("In JSON a path that is not UTF-8 is there in base64 as well, and no other")
    func members() {
        #expect(JSONMember.path("path", "/a é".utf8).line == #"{"path":"/a é"}"#)
        #expect(
            JSONMember.path("path", [0x2F, 0xFF, 0xFE]).line
                == "{\"path\":\"/\u{FFFD}\u{FFFD}\",\"pathBase64\":\"L//+\"}")
    }

    @Test("The built command offers, and accepts to and against, such names")
    func builtCommand() async throws {
        let node = try ScriptedNode { request, stream, _ in
            switch request {
            case .offer(let request):
                #expect(request.documentPath.suffix(10) == Data("/b2-".utf8) + [0xFF, 0xFE] + Data(".bin".utf8))
                throw HandoffError(.unsupported, "not in this script")
            case .activities: try await Script.send([Script.listing(7, kind: .document)], on: stream)
            case .accept(let request):
                #expect(request.destination.suffix(3) == Data([0x64, 0xFF, 0x64]))
                #expect(request.against.map { $0.suffix(10).prefix(6) } == [Data("/b2-".utf8) + [0xFF, 0xFE]])
                try await stream.respond(.accept(.with { $0.handoffID = Data(count: 16) }))
                try await stream.send(
                    record: WireAcceptEvent.with { $0.payload = .with { $0.summary = Script.listing(7).activity } })
                try await stream.send(
                    record: WireAcceptEvent.with {
                        $0.continued = .with {
                            $0.path = request.destination + Data("/x".utf8)
                            $0.bytes = 1000
                        }
                    })
                await stream.finish()
            default: throw HandoffError(.unsupported, "not in this script")
            }
        }
        // The shell makes the bytes. A Swift string cannot contain them.
        let offered = try await shell(#"printf x > "$n"; exec "$0" offer "$n""#, node)
        #expect(offered.errors.contains("not in this script"), "\(offered)")
        let script = #"mkdir "$d"; printf x > "$n"; exec "$0" accept --json --to "$d" --against "$n""#
        let accepted = try await shell(script, node)
        let event = try JSONParser.parse(accepted.output.split(separator: "\n").last.map(String.init) ?? "")
        #expect(event["event"] == "continued", "\(accepted)")
        let base64 = try #require(event["pathBase64"]).jsonText.filter { $0 != "\"" }
        #expect(Data(base64Encoded: base64)?.suffix(5) == Data([0x64, 0xFF, 0x64, 0x2F, 0x78]))
    }

    @Test(
        "Each other path reaches the built command byte for byte",
        arguments: [
            (#"printf 'accept to=/tmp\n' > "$n"; "$0" policy check "$n""#, #"b2-\xff\xfe.bin has no mistakes: 1 rule"#),
            (#"mkdir "$d"; "$0" roots add docs "$d""#, "cannot be written down"),
            (#"printf "$p" > "$n"; "$0" applications register "$n" --command true"#, "Editor (org.example.editor) is"),
            (#"printf "$p" > "$n"; "$0" application --manifest "$n" < /dev/null"#, #""event":"ready""#),
            (#"printf key > "$n"; chmod 600 "$n"; "$0" account join --key-file "$n""#, "account key"),
            (
                #"printf key > "$n"; chmod 644 "$n"; "$0" account join --key-file "$n""#,
                #"the key file b2-\xff\xfe.bin"#
            ),
        ])
    func otherPaths(_ script: String, _ wanted: String) async throws {
        let node = try ScriptedNode { _, _, _ in throw HandoffError(.unsupported, "not in this script") }
        let plist =
            #"p='<plist version="1.0"><dict><key>CFBundleIdentifier</key><string>org.example.editor</string>"#
            + #"<key>CFBundleName</key><string>Editor</string></dict></plist>'; "#
        let result = try await shell(plist + script, node)
        #expect((result.output + result.errors).contains(wanted), "\(result)")
    }

    private func shell(_ script: String, _ node: ScriptedNode) async throws -> (output: String, errors: String) {
        let names = #"n=$(printf 'b2-\377\376.bin'); d=$(printf 'd\377d'); cd "$BATON_HOME"; "#
        let result = try await Subprocess.run(
            .path("/bin/sh"), arguments: ["-c", names + script, BuiltCommand.path.string],
            environment: .inherit.updating(["BATON_HOME": node.folder]), input: .none, output: .string(limit: 1 << 16),
            error: .string(limit: 1 << 16))
        return (result.standardOutput, result.standardError)
    }
}
