// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Subprocess
import SystemPackage
import Testing

/// Other users of this machine learn nothing from a node, or from commands that hold secrets.
///
/// The usual leaks are world-readable sockets and core dumps, and keys in arguments and environments.
@Suite("Secrets on this machine", .serialized, .enabled(if: geteuid() == 0, "it needs root to be two other users"))
struct LocalSecrecyTests {
    private static let owner = 65533
    private static let stranger = 65532

    /// A home of `owner`.
    private func makeHome() throws -> ScratchFolder {
        let home = try ScratchFolder("secrecy")
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o755, .ownerAccountID: Self.owner, .groupOwnerAccountID: Self.owner],
            ofItemAtPath: home.path)
        return home
    }

    /// A program that runs until the test ends.
    private final class Program: Sendable {
        let process: ChildProcess
        let errors: String

        /// - Parameter user: the user who runs it.
        init(_ arguments: [String], by user: Int, home: String, folder: String) throws {
            errors = folder + "/errors-\(UUID().uuidString)"
            // Allow core dumps, so that only the command itself prevents them.
            let script = "cd \(folder) && ulimit -c unlimited && exec \"$@\""
            let user = ["setpriv", "--reuid", "\(user)", "--regid", "\(user)", "--clear-groups"]
            process = try ChildProcess(
                ["bash", "-c", script, "bash"] + user + arguments,
                environment: [
                    "PATH": "/usr/bin:/bin", "BATON_HOME": home, "SWIFT_BACKTRACE": "enable=no",
                    "AVAHI_COMPAT_NOWARN": "1",
                ], output: .null, error: .file(errors))
        }

        var proc: String { "/proc/\(process.processIdentifier)" }
        var log: String { (try? String(contentsOfFile: errors, encoding: .utf8)) ?? "" }
    }

    /// Runs a program as a user to its end, and returns its status and output.
    private func run(
        _ arguments: [String], by user: Int, home: String = "/nonexistent", input: String = ""
    ) async throws -> (status: TerminationStatus, output: String, errors: String) {
        let result = try await Subprocess.run(
            .name("setpriv"),
            arguments: Arguments(
                ["--reuid", "\(user)", "--regid", "\(user)", "--clear-groups"] + arguments),
            environment: .inherit.updating(["BATON_HOME": FilePath(home).string]), workingDirectory: "/",
            input: .string(input), output: .string(limit: 1 << 20), error: .string(limit: 1 << 20))
        return (result.terminationStatus, result.standardOutput, result.standardError)
    }

    private func makeAccount(_ home: ScratchFolder) async throws -> String {
        let made = try await run([BuiltCommand.path.string, "account", "create"], by: Self.owner, home: home.path)
        #expect(made.status == .exited(0))
        return made.output.filter { $0 != "\n" }
    }

    private func startNode(_ home: ScratchFolder) async throws -> Program {
        let node = try Program(
            [BuiltCommand.path.string, "node", "--verbose"], by: Self.owner, home: home.path, folder: home.path)
        #expect(await eventually { node.log.contains("ready on port") }, "\(node.log)")
        return node
    }

    @Test("Neither another user nor another program of the same user reads a node's memory or environment")
    func memory() async throws {
        let home = try makeHome()
        defer { home.remove() }
        _ = try await makeAccount(home)
        let node = try await startNode(home)
        let others = try Program(["sleep", "60"], by: Self.owner, home: home.path, folder: home.path)
        for file in ["mem", "environ", "maps", "auxv", "stack"] {
            for user in [Self.owner, Self.stranger] {
                let read = try await run(["head", "-c", "1", "\(node.proc)/\(file)"], by: user)
                #expect(read.status != .exited(0), "\(file) by \(user)")
            }
        }
        // The same attempt succeeds on a program without protection.
        #expect(
            try await eventually {
                try await run(["head", "-c", "1", "\(others.proc)/environ"], by: Self.owner).status == .exited(0)
            })
    }

    @Test("A node that is killed by a fault leaves no core")
    func core() async throws {
        let home = try makeHome()
        defer { home.remove() }
        _ = try await makeAccount(home)
        let node = try await startNode(home)
        node.process.signal(SIGSEGV)
        #expect(await eventually { node.process.ending == .signalled(SIGSEGV) })
        let left = try FileManager.default.contentsOfDirectory(atPath: home.path).filter { $0.hasPrefix("core") }
        #expect(left.isEmpty)

        // If core dumps are files in the folder, a program without protection leaves one.
        let pattern = try String(contentsOfFile: "/proc/sys/kernel/core_pattern", encoding: .utf8)
        guard pattern.hasPrefix("core") else { return }
        let other = try Program(["sleep", "60"], by: Self.owner, home: home.path, folder: home.path)
        #expect(await eventually { (try? String(contentsOfFile: other.proc + "/comm", encoding: .utf8)) == "sleep\n" })
        other.process.signal(SIGSEGV)
        #expect(await eventually { !other.process.isRunning })
        #expect(try FileManager.default.contentsOfDirectory(atPath: home.path).contains { $0.hasPrefix("core") })
    }

    @Test("The account key is in no argument, environment, log or file, and not in a node's memory")
    func accountKey() async throws {
        let home = try makeHome()
        defer { home.remove() }
        let key = try await makeAccount(home)
        let second = try makeHome()
        defer { second.remove() }
        let joining = try Program(
            [BuiltCommand.path.string, "account", "join"], by: Self.owner, home: second.path, folder: second.path)
        try joining.process.input.write(contentsOf: Data((key + "\n").utf8))
        #expect(await eventually { joining.process.ending == .exited(0) }, "\(joining.log)")
        let node = try await startNode(second)

        let compact = key.filter { $0 != "-" }
        let forms = [key, key.uppercased(), compact, String(compact.dropFirst(7))].map { Data($0.utf8) }
        func expectAbsent(_ content: Data, _ place: String) {
            for form in forms { #expect(content.range(of: form) == nil, "\(place)") }
        }
        for file in ["cmdline", "environ"] {
            expectAbsent(try Data(contentsOf: URL(filePath: "\(node.proc)/\(file)")), file)
        }
        expectAbsent(Data((node.log + joining.log).utf8), "log")
        for file in try FileManager.default.subpathsOfDirectory(atPath: second.path) {
            let path = second.path + "/" + file
            guard let type = try FileManager.default.attributesOfItem(atPath: path)[.type] as? FileAttributeType,
                type == .typeRegular
            else { continue }
            expectAbsent(try Data(contentsOf: URL(filePath: path)), file)
        }
        try expectAbsentFromMemory(of: node, forms)
    }

    /// Reads every writable mapping, which only root can.
    private func expectAbsentFromMemory(of node: Program, _ forms: [Data]) throws {
        let memory = try FileHandle(forReadingFrom: URL(filePath: node.proc + "/mem"))
        defer { try? memory.close() }
        var isRead = false
        // Foundation reads at most one page of such a file at once.
        let maps = try FileHandle(forReadingFrom: URL(filePath: node.proc + "/maps"))
        defer { try? maps.close() }
        var list = Data()
        while let part = try maps.read(upToCount: 1 << 16), !part.isEmpty { list += part }
        for line in String(decoding: list, as: UTF8.self).split(separator: "\n") where line.contains(" rw-p ") {
            let ends = line.prefix { $0 != " " }.split(separator: "-").compactMap { UInt64($0, radix: 16) }
            guard ends.count == 2, ends[1] - ends[0] <= 256 << 20 else { continue }
            try memory.seek(toOffset: ends[0])
            guard let content = try? memory.read(upToCount: Int(ends[1] - ends[0])) else { continue }
            isRead = true
            for form in forms { #expect(content.range(of: form) == nil, "memory at \(line)") }
        }
        #expect(isRead)
    }

    @Test("Another user gets nothing from the local socket; root and the owner do")
    func socket() async throws {
        let home = try makeHome()
        defer { home.remove() }
        _ = try await makeAccount(home)
        let node = try await startNode(home)
        let socket = home.path + "/run/node.socket"
        // Prints the number of bytes that it received, or the reason that it could not connect.
        let talk = """
            use Socket;
            socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die;
            connect($s, sockaddr_un($ARGV[0])) or do { print "refused\\n"; exit };
            # A HELLO as every client sends it; whatever comes back is too much.
            send($s, pack("CCNN", 1, 0, 0, 0), MSG_NOSIGNAL);
            my ($all, $part) = ("", "");
            local $SIG{ALRM} = sub { print "open, got ", length($all), "\\n"; exit };
            alarm 10;
            while (sysread($s, $part, 4096)) { $all .= $part; }
            print "closed, got ", length($all), "\\n";
            """
        #expect(try await run(["perl", "-e", talk, socket], by: Self.stranger).output == "refused\n")
        // Even with an open folder and an open socket, the node checks the peer's user.
        for path in [home.path + "/run", socket] {
            try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: path)
        }
        #expect(try await run(["perl", "-e", talk, socket], by: Self.stranger).output == "closed, got 0\n")
        let status = [BuiltCommand.path.string, "status"]
        #expect(try await run(status, by: Self.stranger, home: home.path).status != .exited(0))
        #expect(try await run(status, by: Self.owner, home: home.path).status == .exited(0))
        #expect(try await run(status, by: 0, home: home.path).status == .exited(0))
        #expect(node.log.contains("another user's connection"))
    }

    @Test("A command says nothing to a socket behind which another user listens")
    func strangersSocket() async throws {
        let home = try makeHome()
        defer { home.remove() }
        _ = try await makeAccount(home)
        let folder = home.path + "/run"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder)
        // Prints the number of bytes from the first client.
        let listen = """
            use Socket;
            socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die;
            bind($s, sockaddr_un($ARGV[0])) or die $!;
            chmod 0777, $ARGV[0];
            listen($s, 1) or die;
            accept(my $c, $s) or die;
            my ($all, $part) = ("", "");
            while (sysread($c, $part, 4096)) { $all .= $part; }
            print "got ", length($all), "\\n";
            """
        let socket = folder + "/node.socket"
        async let listener = run(["perl", "-e", listen, socket], by: Self.stranger)
        #expect(await eventually { FileManager.default.fileExists(atPath: socket) })
        let offer = [BuiltCommand.path.string, "offer", "--url", "https://example.org/", "--title", "secret"]
        let offered = try await run(offer, by: Self.owner, home: home.path)
        #expect(offered.status != .exited(0) && offered.errors.contains("another user's"), "\(offered)")
        #expect(try await listener.output == "got 0\n")
    }
}
