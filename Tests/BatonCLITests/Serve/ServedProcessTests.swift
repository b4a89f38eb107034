// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTestSupport
import BatonTransport
import FoundationEssentials
import Glibc
import Synchronization
import Testing

@testable import BatonCLI

@Suite("Served commands", .serialized)
struct ServedProcessTests {
    /// A local socket with the server behind it, which serves each stream.
    private struct Road {
        let node: ScriptedNode
        let connection: Connection
        let notes: Notes

        /// - Parameter devices: the identifiers of the devices that open the streams, in turn.
        init(_ line: String, throughShell: Bool = true, devices: [String] = ["desktop"]) async throws {
            let notes = Notes()
            let asked = Atomic(0)
            let command = try ServedCommand(CommandArgument(stringLiteral: line), throughShell: throughShell)
            let server = StreamServer(command: command)
            node = try ScriptedNode { request, stream, _ in
                guard case .continuationStream = request else { return }
                let device = devices[asked.add(1, ordering: .relaxed).oldValue % devices.count]
                // All devices have the same name.
                _ = await server.serve(stream, from: "desktop", identified: device) { notes.add($0) }
            }
            self.notes = notes
            connection = try await Connection.connect(
                toLocalSocket: node.home.socketPath, on: EventLoop(name: "test"))
        }

        func open() async throws -> BatonTransport.Stream {
            try await connection.request(.continuationStream(.init())).1
        }
    }

    private final class Notes: Sendable {
        private let all = Mutex<[String]>([])
        func add(_ note: String) { all.withLock { $0.append(note) } }
        var text: String { all.withLock { $0.joined(separator: "\n") } }
    }

    /// Reads the whole stream. The code is the error at its end; nil for END.
    private static func readToFailure(
        _ stream: BatonTransport.Stream
    ) async -> (output: [UInt8], code: TransportError.Code?) {
        var output: [UInt8] = []
        do throws(TransportError) {
            while let buffer = try await stream.read() { output += buffer.bytes }
            return (output, nil)
        } catch {
            return (output, error.code)
        }
    }

    private static func readAll(_ stream: BatonTransport.Stream) async throws -> [UInt8] {
        var output: [UInt8] = []
        while let buffer = try await stream.read() { output += buffer.bytes }
        return output
    }

    @Test("output comes whole, and its end after it, while the input is open")
    func output() async throws {
        let road = try await Road("head -c 5000000 /dev/zero; printf end")
        let stream = try await road.open()
        let output = try await Self.readAll(stream)
        #expect(output.count == 5_000_003)
        #expect(output.suffix(3) == Array("end".utf8)[...])
    }

    @Test(
        "a command that fails, or is killed, is no end: all that it wrote comes, and then its status",
        arguments: [
            ("exit 3", 0, 3), ("head -c 5000000 /dev/zero; exit 3", 5_000_000, 3), ("kill -9 $$", 0, 137),
            ("head -c 100000 /dev/zero; kill -TERM $$", 100_000, 143), ("exec >&-; exit 7", 0, 7),
        ])
    func failure(line: String, count: Int, status: UInt8) async throws {
        let road = try await Road(line)
        let (output, code) = await Self.readToFailure(try await road.open())
        #expect(output.count == count)
        #expect(code == .reset(.programFailed(status: status)))
    }

    @Test("what is read late is whole, although the command has ended and its stream was reset since")
    func readLate() async throws {
        let road = try await Road("printf output", throughShell: false)
        let stream = try await road.open()
        // Write until the reset arrives.
        try await #require(
            eventually { (try? await stream.write(Buffer(copying: [0]))) == nil })
        let (output, code) = await Self.readToFailure(stream)
        #expect(output == Array("output".utf8) && code == nil)
    }

    @Test("the end of the input reaches the command, and its answer comes back")
    func halfClose() async throws {
        let road = try await Road("wc -c", throughShell: false)
        let stream = try await road.open()
        for _ in 0..<40 { try await stream.write(Buffer(copying: [UInt8](repeating: 7, count: 100_000))) }
        await stream.finish()
        let output = String(decoding: try await Self.readAll(stream), as: UTF8.self)
        #expect(output == "4000000\n")
    }

    @Test("a command that closes its output still gets its input")
    func inputOnly() async throws {
        let folder = try ScratchFolder("served")
        defer { folder.remove() }
        let file = folder.path + "/file"
        let road = try await Road("exec >&-; cat > \(file).part; mv \(file).part \(file)")
        let stream = try await road.open()
        try await stream.write(Buffer(copying: Array("later".utf8)))
        await stream.finish()
        #expect(try await Self.readAll(stream).isEmpty)
        #expect(await eventually { FileManager.default.contents(atPath: file) == Data("later".utf8) })
    }

    @Test("who goes on sending to a command that has exited is stopped, without a loss of what it said")
    func exitedEarly() async throws {
        let road = try await Road("head -c 3; exit 4")
        let stream = try await road.open()
        let sending = Task {
            while true { try await stream.write(Buffer(copying: [UInt8](repeating: 65, count: 64 << 10))) }
        }
        let (output, code) = await Self.readToFailure(stream)
        #expect(output == [65, 65, 65] && code == .reset(.programFailed(status: 4)))
        let end = await sending.result
        #expect(throws: TransportError.self) { try end.get() }
        #expect(await eventually { road.notes.text.contains("status 4") })
    }

    @Test("who neither sends nor ends to a command that has exited keeps no stream of the offering application")
    func silent() async throws {
        let road = try await Road("exit 0")
        let held = Mutex<[BatonTransport.Stream]>([])
        // These are more streams than can be open at once.
        for number in 0..<Limits().openStreams + 8 {
            let isOpened = await eventually {
                guard let stream = try? await road.open() else { return false }
                held.withLock { $0.append(stream) }
                return (try? await Self.readAll(stream)) == []
            }
            try #require(isOpened, "stream \(number)")
        }
    }

    @Test("an abort ends the command and what it started, also after the input's end", arguments: [false, true])
    func abort(isInputEnded: Bool) async throws {
        let road = try await Road("echo $$; sleep 1000 & wait")
        let stream = try await road.open()
        let first = try #require(try await stream.read())
        let text = String(decoding: first.bytes, as: UTF8.self).filter(\.isNumber)
        let group = try #require(pid_t(text))
        if isInputEnded { await stream.finish() }
        await stream.reset(.cancelled)
        #expect(await eventually { killpg(group, 0) != 0 })
    }

    @Test(
        "the seventeenth is refused, and the ninth of one device, and there is room again afterwards",
        arguments: [(["desktop"], StreamServer.boundOfDevice), (["desktop", "laptop", "tablet"], StreamServer.bound)])
    func bound(devices: [String], bound: Int) async throws {
        let road = try await Road("cat", throughShell: false, devices: devices)
        var streams: [BatonTransport.Stream] = []
        for _ in 0..<bound { streams.append(try await road.open()) }
        let error = await #expect(throws: HandoffError.self) { _ = try await road.open() }
        #expect(error?.code == .limitExceeded)
        for stream in streams {
            try await stream.write(Buffer(copying: [1]))
            await stream.finish()
            #expect(try await Self.readAll(stream) == [1])
        }
        #expect(
            await eventually {
                guard let stream = try? await road.open() else { return false }
                await stream.finish()
                return true
            })
    }

    @Test("a command that does not exist is a failure of the stream, and told here")
    func missing() async throws {
        let road = try await Road("/nonexistent/command", throughShell: false)
        let error = await #expect(throws: HandoffError.self) { _ = try await road.open() }
        #expect(error?.message.contains("could not be started") == true)
        #expect(await eventually { road.notes.text.contains("cannot be started") })
    }
}
