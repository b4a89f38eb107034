// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import SystemPackage
import Testing

@testable import BatonCLI

/// The built command without a node: mistakes of the program, and the end.
@Suite("baton application", .timeLimit(.minutes(2)))
struct BridgeProcessTests {
    private static func manifest(in folder: ScratchFolder) throws -> String {
        let text = """
            <plist version="1.0"><dict>
                <key>CFBundleIdentifier</key><string>org.example.editor</string>
                <key>BatonTeam</key><string>EXAMPLE</string>
                <key>NSUserActivityTypes</key><array><string>org.example.note</string></array>
            </dict></plist>
            """
        return try folder.write(text, to: "Info.plist").string
    }

    private func run(_ lines: [String]) async throws -> (status: Int32, events: [String]) {
        let folder = try ScratchFolder("bridge")
        defer { folder.remove() }
        let file = try Self.manifest(in: folder)
        let result = try await BuiltCommand.run(
            ["application", "--manifest", file], input: lines.map { $0 + "\n" }.joined())
        return (result.status, result.output.split(separator: "\n").map(String.init))
    }

    /// The numbers of the wrong lines, with their messages.
    private func errors(_ events: [String]) -> [Int: String] {
        var errors: [Int: String] = [:]
        for event in events where event.hasPrefix(#"{"event":"error""#) {
            let object = try? JSONSerialization.jsonObject(with: Data(event.utf8)) as? [String: Any]
            guard let line = object?["line"] as? Int else { continue }
            errors[line] = object?["message"] as? String
        }
        return errors
    }

    @Test("it says that it is ready first, goes on after bad lines, and ends with its input")
    func badLines() async throws {
        let long = #"{"do":"setInFront","inFront":true}"# + String(repeating: " ", count: BridgeLines.bound)
        let (status, events) = try await run([
            "nonsense", "", long, #"{"do":"update","activity":"a"}"#, #"{"do":"becomeCurrent","activity":"a"}"#,
            #"{"do":"becomeCurrent","activity":"a","type":"no type"}"#,
            #"{"do":"becomeCurrent","activity":"baton-1","type":"a"}"#,
            #"{"do":"becomeCurrent","activity":"a","type":"org.example.note","webpageURL":"ftp://a.org/"}"#,
            #"{"do":"becomeCurrent","activity":"a","type":"org.example.note"}"#,
            #"{"do":"becomeCurrent","activity":"a","type":"org.example.else"}"#,
            #"{"do":"becomeCurrent","activity":"a","title":"again"}"#, #"{"do":"saved","request":7}"#,
            #"{"do":"write","stream":"s","text":""}"#, #"{"do":"invalidate","activity":"a"}"#,
            #"{"do":"resignCurrent","activity":"a"}"#,
        ])
        #expect(status == 0)
        #expect(
            events.first
                == #"{"event":"ready","identifier":"org.example.editor","name":"editor","team":"EXAMPLE","#
                + #""types":["org.example.note"]}"#)
        let errors = errors(events)
        #expect(errors.keys.sorted() == [1, 3, 4, 5, 6, 7, 8, 10, 12, 13, 15])
        #expect(errors[3]?.contains("longer than 131072 bytes") == true)
        #expect(errors[5]?.contains("needs a “type”") == true)
        #expect(errors[8]?.contains("http or https") == true)
        #expect(errors[10]?.contains("keeps it") == true)
        #expect(errors[12]?.contains("no question 7 waits") == true)
    }

    @Test("there are as many activities as the bound allows, and an ended one makes room")
    func activityBound() async throws {
        let full = (0...Bridge.activityBound).map {
            #"{"do":"becomeCurrent","activity":"\#($0)","type":"org.example.note"}"#
        }
        let (status, events) = try await run(
            full + [#"{"do":"invalidate","activity":"0"}"#, full[Bridge.activityBound]])
        #expect(status == 0)
        #expect(errors(events).keys.sorted() == [Bridge.activityBound + 1])
    }

    @Test("streams are of activities that were continued, and say so otherwise")
    func streams() async throws {
        // The answer may be slow. The input stays open until it arrives.
        let folder = try ScratchFolder("bridge")
        defer { folder.remove() }
        let file = try Self.manifest(in: folder)
        let program = try ChildProcess(
            [BuiltCommand.path.string, "application", "--manifest", file],
            environment: ["BATON_HOME": "/nonexistent/baton"], output: .pipe, error: .null)
        let lines = [
            #"{"do":"becomeCurrent","activity":"a","type":"org.example.note","supportsContinuationStreams":true}"#,
            #"{"do":"openStream","activity":"a","stream":"s"}"#,
        ]
        try program.input.write(contentsOf: Data(lines.map { $0 + "\n" }.joined().utf8))
        var text = ""
        while !text.contains("streamFailed") {
            let data = program.output.availableData
            guard !data.isEmpty else { break }
            text += String(decoding: data, as: UTF8.self)
        }
        #expect(text.contains(#"{"event":"streamFailed","stream":"s","code":46002,"#), "\(text)")
        // SIGTERM ends it as well.
        program.signal(SIGTERM)
        #expect(program.waitUntilExit() == .exited(0))
    }

    @Test("a manifest that is not there, or is none, is wrong usage")
    func manifests() async throws {
        for manifest in ["org.example.none", "/nonexistent/Info.plist", "/dev/null"] {
            let result = try await BuiltCommand.run(["application", "--manifest", manifest])
            #expect(result.status == 64)
            #expect(result.output.isEmpty)
            #expect(result.errors.hasPrefix("baton: "), "\(result.errors)")
        }
    }
}
