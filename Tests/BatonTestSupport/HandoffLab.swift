// SPDX-License-Identifier: Apache-2.0

package import Foundation
import Synchronization

/// A lab whose hosts have one account and the built `baton` command: what a user does by hand, done by tests.
///
/// Host `n` is the `n`th of the device names. Each command keeps its standard error.
package final class HandoffLab: Sendable {
    /// The hosts and their network.
    package let lab: Lab
    /// For documents and destinations; gone with the lab.
    package var folder: URL { scratch.url }

    /// The account key in a file that only its owner can read, which real devices would not have.
    package let keyFile: URL

    private let scratch: ScratchFolder
    private let names: [String]
    /// Everything that was started here: it runs for as long as the lab does, or until it is told to end.
    private let programs = Mutex<[LabProgram]>([])
    private let isDown = Mutex(false)
    /// The node of each host that was started last.
    private let nodes = Mutex<[Int: HostCommand]>([:])

    /// Makes a lab with as many hosts as names are given.
    ///
    /// - Parameter members: how many of the hosts are of the one account; the first makes it and the others join. With
    ///   none there is no account.
    package init(_ names: [String] = ["laptop", "desktop"], members: Int? = nil) async throws {
        self.names = names
        lab = try await Lab.make(hosts: names.count)
        scratch = try ScratchFolder("handoff")
        keyFile = scratch.url.appendingPathComponent("account-key")
        guard members != 0 else { return }
        let created = try await run(1, "account", "create", "--name", names[0])
        guard let key = created.lines.first else { throw Lab.Failure(description: created.errors) }
        try Data((key + "\n").utf8).write(to: keyFile)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: keyFile.path)
        for host in 1..<(members ?? names.count) {
            let joining = try start(host + 1, "account", "join", "--no-wait", "--name", names[host])
            joining.program.send(key)
            joining.program.closeInput()
            let joined = try await joining.end()
            guard joined.status == 0 else { throw Lab.Failure(description: joined.errors) }
        }
    }

    deinit {
        if !isDown.withLock({ $0 }) { end() }
    }

    /// Ends everything and removes the files, on a thread of its own as ``Lab/make(hosts:)`` does: before the test
    /// process ends, but not before this returns. Idempotent.
    package func down() {
        let wasDown = isDown.withLock { isDown in
            defer { isDown = true }
            return isDown
        }
        if !wasDown { LabDemolition.begin { self.end() } }
    }

    private func end() {
        lab.down()
        programs.withLock { $0 = [] }
        nodes.withLock { $0 = [:] }
        scratch.remove()
    }

    // MARK: Commands

    /// Starts `baton` on a host.
    ///
    /// - Parameters:
    ///   - home: another home than the host's own.
    ///   - wrapper: a program with arguments that runs the command, as `env` does.
    ///   - input: a file for its standard input, which otherwise is ``LabProgram/send(_:)-(String)``.
    ///   - output: a file for its standard output, for what is not lines.
    package func start(
        _ host: Int, _ arguments: String..., home: URL? = nil, wrapper: [String] = [], input: URL? = nil,
        output: URL? = nil
    ) throws -> HostCommand {
        try start(host, arguments, home: home, wrapper: wrapper, input: input, output: output)
    }

    /// The same of arguments in a list.
    package func start(
        _ host: Int, _ arguments: [String], home: URL? = nil, wrapper: [String] = [], input: URL? = nil,
        output: URL? = nil
    ) throws -> HostCommand {
        let environment = home.map { ["env", "BATON_HOME=\($0.path)"] } ?? []
        return try startProgram(
            host, environment + wrapper + [Lab.product("baton")] + arguments, input: input, output: output)
    }

    /// Gives a host another address, as a new lease does: 10.77.0.101 in the place of 10.77.0.1 for the first.
    ///
    /// - Returns: the new address. Nobody has heard of it yet.
    @discardableResult
    package func move(_ host: Int) async throws -> String {
        let address = "10.77.0.\(100 + host)"
        // In this order: with its first address a network loses all others of that network.
        let script = """
            ip address delete 10.77.0.\(host)/24 dev eth0 && ip address add \(address)/24 brd + dev eth0 &&
                ip route replace 224.0.0.0/4 dev eth0
            """
        let moved = try await startProgram(host, ["sh", "-c", script]).end()
        guard moved.status == 0 else { throw Lab.Failure(description: moved.errors) }
        return address
    }

    /// Starts any program on a host, in the same way.
    package func startProgram(
        _ host: Int, _ arguments: [String], input: URL? = nil, output: URL? = nil
    ) throws -> HostCommand {
        let errors = folder.appendingPathComponent("errors-\(UUID().uuidString)")
        // The shell is replaced, so that pid and signals stay the program's own.
        let script = """
            e=$1 i=$2 o=$3; shift 3
            [ -z "$i" ] || exec <"$i"
            [ -z "$o" ] || exec >"$o"
            exec "$@" 2>"$e"
            """
        let program = try lab.start(
            host, ["sh", "-c", script, "sh", errors.path, input?.path ?? "", output?.path ?? ""] + arguments)
        programs.withLock { programs in
            // Each that has ended would keep its pipes open.
            programs.removeAll { !$0.isRunning }
            programs.append(program)
        }
        return HostCommand(program: program, errorFile: errors)
    }

    /// Runs `baton` on a host to its end.
    package func run(_ host: Int, _ arguments: String..., home: URL? = nil) async throws -> HostCommand.Finished {
        let command = try start(host, arguments, home: home)
        command.program.closeInput()
        return try await command.end()
    }

    /// Starts a host's node and waits until it is ready.
    ///
    /// - Returns: the node, and the port that it listens on.
    package func startNode(
        _ host: Int, _ arguments: String..., home: URL? = nil, wrapper: [String] = []
    ) async throws -> (command: HostCommand, port: Int) {
        let command = try start(
            host, ["node", "--json", "--verbose"] + arguments, home: home, wrapper: wrapper)
        nodes.withLock { $0[host] = command }
        let ready = try await command.event("ready")
        return (command, ready.port ?? 0)
    }

    /// Starts the nodes of all hosts, and waits until each sees the others.
    package func startNodes() async throws -> [HostCommand] {
        var nodes: [HostCommand] = []
        for host in 1...names.count { nodes.append(try await startNode(host).command) }
        for host in 1...names.count { try await awaitPeers(names.count - 1, on: host) }
        return nodes
    }

    /// Waits until a host's node sees so many others.
    ///
    /// - Throws: ``Lab/Failure`` at the deadline, with what the nodes of all hosts know and have said last.
    package func awaitPeers(_ count: Int, on host: Int, within timeout: Duration = .seconds(30)) async throws {
        do {
            try await eventually("host \(host) sees \(count) devices", within: timeout) {
                try await self.status(host)?.peers == count
            }
        } catch let failure as Lab.Failure {
            throw Lab.Failure(description: failure.description + (await knowledge()))
        }
    }

    /// The status of each host's node, the devices that it knows, and the end of its log.
    private func knowledge() async -> String {
        var text = ""
        for host in 1...names.count {
            text += "\n--- host \(host) (\(names[host - 1]))"
            for command in ["status", "devices"] {
                let told = try? await run(host, command, "--json")
                text += "\n" + (told.map { $0.lines.joined(separator: "\n") + $0.errors } ?? "\(command): no answer")
            }
            let log = nodes.withLock { $0[host]?.errors } ?? "no node was started"
            text += log.split(separator: "\n").suffix(40).map { "\n| " + $0 }.joined()
        }
        return text
    }

    /// The answer of `status`; nil when it failed.
    package func status(_ host: Int) async throws -> LabEvent? {
        try await run(host, "status", "--json").events.first
    }

    /// Offers something on a host and waits until it is taken on.
    ///
    /// - Returns: the command, which goes on, and the activity's id.
    package func offer(_ host: Int, _ arguments: String...) async throws -> (command: HostCommand, id: String) {
        let command = try start(host, ["offer", "--json"] + arguments)
        let offered = try await command.event("offered")
        return (command, offered.id ?? "")
    }

    /// Follows the activities that a host sees.
    package func watch(_ host: Int) throws -> HostCommand {
        try start(host, "activities", "--watch", "--json")
    }

    /// Bytes that a host has sent so far, packets and all.
    package func sentBytes(_ host: Int) async throws -> Int {
        // Of the host, which /sys is not.
        let counted = try await startProgram(host, ["cat", "/proc/net/dev"]).end()
        let fields = counted.lines.first { $0.contains("eth0:") }?.split(whereSeparator: { $0 == " " || $0 == ":" })
        guard let fields, fields.count > 9, let bytes = Int(fields[9]) else {
            throw Lab.Failure(description: "host \(host) counts no bytes: \(counted.errors)")
        }
        return bytes
    }

    // MARK: Files

    /// A document of seeded noise, which no compression and no mistaken order of chunks survives.
    package func document(_ name: String, bytes: Int, seed: UInt64) throws -> URL {
        var generator = SeededGenerator(seed: seed)
        // Longer than a chunk, so that none repeats itself: it would be compressed, and cross faster than it should.
        let noise = Data(generator.bytes((1 << 20) + 4096))
        let url = folder.appendingPathComponent(name)
        _ = FileManager.default.createFile(atPath: url.path, contents: nil)
        let file = try FileHandle(forWritingTo: url)
        defer { try? file.close() }
        var written = 0
        var block: UInt64 = 0
        while written < bytes {
            var data = noise
            withUnsafeBytes(of: block) { data.replaceSubrange(0..<8, with: $0) }
            let part = data.prefix(bytes - written)
            try file.write(contentsOf: part)
            written += part.count
            block += 1
        }
        return url
    }

    /// A new empty folder.
    package func destination(_ name: String) throws -> URL {
        let url = folder.appendingPathComponent(name)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
        return url
    }

    /// Everything in a folder, hidden files as well.
    package func contents(of folder: URL) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    }
}

/// A program on a lab host, with what it says on standard error.
package struct HostCommand: Sendable {
    /// The result of a program that ended.
    package struct Finished: Sendable {
        /// The exit code.
        package let status: Int32
        /// Standard output.
        package let lines: [String]
        /// Standard error.
        package let errors: String
        /// The lines of standard output that are JSON.
        package var events: [LabEvent] { lines.compactMap(LabEvent.init) }
    }

    /// The program itself.
    package let program: LabProgram
    let errorFile: URL

    /// Its standard error so far.
    package var errors: String { (try? String(contentsOf: errorFile, encoding: .utf8)) ?? "" }

    /// The JSON that it has printed so far.
    package var events: [LabEvent] { program.lines.compactMap(LabEvent.init) }

    /// Waits for an event.
    @discardableResult
    package func event(
        _ name: String, within timeout: Duration = .seconds(30),
        where isWanted: (LabEvent) -> Bool = { _ in true }
    ) async throws -> LabEvent {
        var found: LabEvent?
        do {
            try await program.line(within: timeout) { line in
                guard let event = LabEvent(line), event.event == name, isWanted(event) else { return false }
                found = event
                return true
            }
        } catch {
            throw Lab.Failure(description: "no event \(name): \(error); it said:\n\(errors)")
        }
        guard let found else { throw Lab.Failure(description: "no event \(name)") }
        return found
    }

    /// Waits for an activity that a watch tells of.
    @discardableResult
    package func listed(_ title: String, within timeout: Duration = .seconds(30)) async throws -> LabEvent {
        try await program.line(within: timeout) { line in
            guard let event = LabEvent(line) else { return false }
            return event.title == title && ["present", "added", "updated"].contains(event.event)
        }
        return events.last { $0.title == title } ?? LabEvent()
    }

    /// Waits until it has ended.
    package func end(within timeout: Duration = .seconds(40)) async throws -> Finished {
        let status: Int32
        do {
            status = try await program.end(within: timeout)
        } catch {
            throw Lab.Failure(description: "\(error); it said:\n\(errors)")
        }
        // Its last output may still be in the pipe; the end of the pipe is an error of this wait.
        _ = try? await program.line(within: .seconds(5)) { _ in false }
        return Finished(status: status, lines: program.lines, errors: errors)
    }

    /// Sends a signal and waits for the end.
    @discardableResult
    package func end(by signal: Int32, within timeout: Duration = .seconds(40)) async throws -> Finished {
        program.signal(signal)
        return try await end(within: timeout)
    }
}

/// A line of `--json`, whichever command printed it: an event, an activity or a status.
package struct LabEvent: Decodable, Sendable {
    package var event, time, id, kind, type, title, device, deviceID, since, path, code, message: String?
    package var webPageURL, responder, bottleneck, entry, direction, state: String?
    package var size, bytes, total, resumed, rate, claim: UInt64?
    package var port, peers: Int?

    /// Nothing at all.
    package init() {}

    /// - Returns: `nil` for what is no JSON object.
    package init?(_ line: String) {
        guard let event = try? JSONDecoder().decode(Self.self, from: Data(line.utf8)) else { return nil }
        self = event
    }
}
