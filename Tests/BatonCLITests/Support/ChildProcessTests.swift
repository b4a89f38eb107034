// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import Foundation
import Glibc
import SystemPackage
import Testing

/// Tests of the type that starts programs for the tests.
@Suite("Child process", .timeLimit(.minutes(2)))
struct ChildProcessTests {
    @Test("How it ended is told, as often as asked: its status, or the signal")
    func ending() throws {
        #expect(try ChildProcess.run(["sh", "-c", "exit 7"]).ending == .exited(7))
        let process = try ChildProcess(["sleep", "600"])
        #expect(process.isRunning)
        process.signal(SIGTERM)
        #expect(process.waitUntilExit() == .signalled(SIGTERM))
        // No other process has its id, so a late signal does nothing.
        process.signal(SIGKILL)
        #expect(process.ending == .signalled(SIGTERM) && !process.isRunning)
        #expect(process.waitUntilExit().status == SIGTERM)
    }

    @Test("It is killed and reaped with the last reference")
    func lastReference() throws {
        var process: ChildProcess? = try ChildProcess(["sleep", "600"])
        let identifier = try #require(process?.processIdentifier)
        #expect(kill(identifier, 0) == 0)
        process = nil
        #expect(kill(identifier, 0) == -1 && errno == ESRCH)
    }

    @Test("One that cannot be started is an error")
    func missing() {
        #expect(throws: Errno.noSuchFileOrDirectory) { try ChildProcess(["/nonexistent/program"]) }
    }

    @Test("It reads its input and writes its output while neither fits into a pipe")
    func bothWays() throws {
        let input = Data((0..<1 << 20).map { UInt8(ascii: "a") + UInt8($0 % 26) })
        let (ending, output) = try ChildProcess.run(["cat"], input: input)
        #expect(ending == .exited(0) && output == String(decoding: input, as: UTF8.self))
        // A program that does not read its input does not block the test either.
        #expect(try ChildProcess.run(["true"], input: input).ending == .exited(0))
    }

    @Test("Its output and its errors go where they are told to")
    func outputs() throws {
        let folder = try ScratchFolder("child")
        defer { folder.remove() }
        let file = folder.path + "/output"
        let script = ["sh", "-c", "echo $WORD; echo error >&2; echo more"]
        let process = try ChildProcess(
            script, environment: ["WORD": "output"], output: .file(file), error: .file(file))
        #expect(process.waitUntilExit() == .exited(0))
        #expect(try String(contentsOfFile: file, encoding: .utf8) == "output\nerror\nmore\n")
        let piped = try process.output.readToEnd() ?? Data()
        #expect(piped.isEmpty)
        #expect(try ChildProcess.run(script, error: .null).output == "\nmore\n")
        #expect(try ChildProcess.run(script, output: .null, error: .pipe).output == "error\n")
    }

    @Test("It starts beside 2,000 open descriptors, and has none of them")
    func descriptors() async {
        await #expect(processExitsWith: .success) {
            DescriptorLimit.raise()
            // These descriptors have no O_CLOEXEC.
            let others = (0..<2000).map { _ in open("/dev/null", O_RDONLY) }
            #expect(others.allSatisfy { $0 >= 0 })
            // The last descriptor is the one that reads the folder.
            let output = try ChildProcess.run(["ls", "/proc/self/fd"]).output
            #expect(output == "0\n1\n2\n3\n")
            for other in others { close(other) }
        }
    }

    @Test("It ignores no signal and blocks none, whatever the tests do")
    func signals() async {
        await #expect(processExitsWith: .success) {
            signal(SIGINT, SIG_IGN)
            var blocked = sigset_t()
            sigaddset(&blocked, SIGTERM)
            pthread_sigmask(SIG_BLOCK, &blocked, nil)
            let output = try ChildProcess.run(["grep", "-E", "SigBlk|SigIgn", "/proc/self/status"]).output
            let sets = output.split(separator: "\n").compactMap { UInt64($0.suffix(16), radix: 16) }
            // Signals 32 and 33 belong to the C library. Its posix_spawn makes every program ignore them.
            #expect(sets.map { $0 & 0x7FFF_FFFF } == [0, 0], "\(output)")
        }
    }
}
