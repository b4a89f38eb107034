// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonApplications
import BatonEventLoop
import BatonProtocol
import Glibc
import Logging
import SystemPackage

struct ApplicationCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "application",
        abstract: "Connect a program in any language, by JSON lines on standard input and output.",
        discussion: """
            A program that starts this command as its child becomes an application of Baton: it offers activities and \
            continues those of other devices. Each line is one JSON object. A message to the command has the member \
            "do", and a message from it "event". The end of standard input ends the application. The \
            article ApplicationMessages.md in the source of the command describes every message:

              do     becomeCurrent update resignCurrent invalidate setInFront
                     deleteSavedUserActivities startAccessing
                     saved willContinue continued (the answers)
                     openStream write finish reset ack
              event  ready node error access
                     willSave willContinue continue (the questions)
                     wasContinued failed didFailToContinue
                     streamOpened data written end streamFailed

              {"do":"becomeCurrent","activity":"a","type":"org.example.note"}
              {"event":"willSave","request":1,"activity":"a"}
              {"do":"saved","request":1,"userInfo":{"page":4}}

            EXAMPLES:
              baton application --manifest org.example.editor
              baton application --manifest ./Info.plist
            """)

    @Option(
        name: .long,
        help: ArgumentHelp(
            "The identifier of an installed application, or a file that `baton applications register` can read.",
            valueName: "id or file"))
    var manifest: CommandArgument

    func run() async throws {
        // If the program goes away, the write fails. Without this the signal would end the process.
        signal(SIGPIPE, SIG_IGN)
        let logger = Logger(label: "baton.application") { _ in
            ErrorOutputLog(level: .notice, name: "baton application")
        }
        let application = try Application(
            try BridgeManifest.description(manifest), home: try CommandEnvironment.home(), logger: logger)

        let ending = FirstResult<CommandError?>()
        await Interrupts.watch([SIGINT, SIGTERM, SIGHUP]) { ending.decide(nil) }
        let printer = BridgePrinter(to: try ByteChannel(.standardOutput)) { ending.decide($0) }
        let bridge = Bridge(application: application, printer: printer)
        let input = try ByteChannel(.standardInput)
        await bridge.start()
        let watching = Task { await bridge.tellNodeStates() }
        Task { ending.decide(await Self.read(input, into: bridge)) }

        let error = await ending.value()
        watching.cancel()
        await bridge.close()
        if let error { throw error }
    }

    /// - Returns: why the input cannot be read; nil at its end.
    private static func read(_ input: ByteChannel, into bridge: Bridge) async -> CommandError? {
        var lines = BridgeLines()
        do throws(Errno) {
            while let buffer = try await input.read() {
                for (number, line) in lines.add(Array(buffer.bytes)) { await bridge.handle(line, number: number) }
            }
        } catch {
            return .failed("standard input cannot be read: \(error)")
        }
        if let (number, line) = lines.last() { await bridge.handle(line, number: number) }
        return nil
    }
}

enum BridgeManifest {
    /// - Parameter manifest: the identifier of an installed application, or else the path of an `Info.plist`.
    static func description(_ manifest: CommandArgument) throws(CommandError) -> Application.Description {
        let manifest = try read(manifest)
        do {
            var types: [ContinuedActivityType] = []
            for type in manifest.activityTypes {
                types.append(
                    try ContinuedActivityType(type, versions: manifest.readableVersions.statements[type]))
            }
            return try Application.Description(
                identifier: manifest.identifier, name: manifest.name, team: manifest.team, continues: types)
        } catch {
            throw CommandError.usage(SafeText.escaped("\(error)"))
        }
    }

    private static func read(_ argument: CommandArgument) throws(CommandError) -> ApplicationManifest {
        let text = argument.text
        let registry = try RegistryAccess.registry()
        if !text.contains("/"), let manifest = registry.installed()[text] { return manifest }
        let path = CommandEnvironment.absolute(argument.path)
        guard text.contains("/") || (try? path.stat()) != nil else {
            throw .usage(
                "no application \(SafeText.escaped(text)) is installed, and there is no such file: `baton applications`"
                    + " shows which are")
        }
        return try RegistryAccess.manifest(path)
    }
}

/// Splits a stream of bytes into lines of at most ``bound`` bytes. A longer line is skipped to its end.
struct BridgeLines {
    /// The most bytes of a line without its end: a user info of 48 KB as JSON, or 96 KiB of a stream as Base64.
    static let bound = 128 << 10

    enum Line: Equatable {
        case text([UInt8])
        case tooLong
    }

    private var partial: [UInt8] = []
    private var isSkipping = false
    /// The number of lines so far, including the last one.
    private(set) var number = 0

    /// Adds bytes, and returns the lines that they complete.
    mutating func add(_ bytes: some Collection<UInt8>) -> [(number: Int, line: Line)] {
        var lines: [(Int, Line)] = []
        var rest = bytes[...]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            collect(rest[..<end])
            lines.append(finish())
            rest = rest[rest.index(after: end)...]
        }
        collect(rest)
        return lines
    }

    /// The line that the end of the input completes; `nil` if the input ended with a whole line.
    mutating func last() -> (number: Int, line: Line)? {
        guard isSkipping || !partial.isEmpty else { return nil }
        return finish()
    }

    private mutating func collect(_ bytes: some Collection<UInt8>) {
        guard !isSkipping else { return }
        guard partial.count + bytes.count <= Self.bound else {
            partial = []
            isSkipping = true
            return
        }
        partial.append(contentsOf: bytes)
    }

    private mutating func finish() -> (Int, Line) {
        number += 1
        defer {
            partial = []
            isSkipping = false
        }
        return (number, isSkipping ? .tooLong : .text(partial))
    }
}
