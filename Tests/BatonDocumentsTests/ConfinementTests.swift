// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

/// The result of one attempt to use a file: 0, or the error number.
private func outcome(_ attempt: () -> Int32) -> Int32 {
    let value = attempt()
    if value < 0 { return errno }
    return 0
}

private let hasLandlock = (try? Landlock.version()) != nil

@Suite("Confinement of a receiving thread", .enabled(if: hasLandlock, "this kernel has no Landlock"))
struct ConfinementTests {
    let fixture: WriterFixture

    init() throws {
        fixture = try WriterFixture()
    }

    private func writer(_ size: UInt64 = 1000, in folder: DestinationFolder? = nil) async throws -> DocumentWriter {
        try await DocumentWriter.create(
            try DocumentFixture.tree(size), from: DocumentFixture.origin,
            in: try folder ?? DestinationFolder(fixture.folder), ledger: fixture.ledger)
    }

    /// A thread that a peer controls could try these: read a key, plant a file, replace, remove, move out, link, run,
    /// list.
    private func attempts(outside: FilePath, inside: FilePath) -> [(name: String, attempt: @Sendable () -> Int32)] {
        let (secret, planted) = (outside.appending("secret").string, outside.appending("planted").string)
        let (folder, within) = (outside.string, inside.appending("report").string)
        return [
            ("read", { open(secret, O_RDONLY | O_CLOEXEC) }),
            ("write", { open(secret, O_WRONLY | O_CLOEXEC) }),
            ("truncate", { truncate(secret, 0) }),
            ("make", { open(planted, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600) }),
            ("list", { open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }),
            ("make folder", { mkdir(planted, 0o700) }),
            ("link out", { link(within, planted) }),
            ("move out", { rename(within, planted) }),
            ("symbolic link", { symlink(secret, planted) }),
            ("remove", { unlink(secret) }),
        ]
    }

    @Test("The thread can neither read, write, list, make nor remove anything outside")
    func outside() async throws {
        let outside = try fixture.scratch.makeFolder("outside")
        try fixture.scratch.makeFile("outside/secret", [7])
        try fixture.scratch.makeFile("destination/report", [1])
        let writer = try await writer()
        for (name, attempt) in attempts(outside: outside, inside: fixture.folder) {
            let result = await writer.thread.perform { outcome(attempt) }
            #expect(result == EACCES || result == EXDEV, "\(name): \(Errno(rawValue: result))")
        }
        #expect(try DocumentFixture.read(outside.appending("secret")) == [7])
        #expect(DocumentFixture.names(in: outside) == ["secret"])
        #expect(await writer.end() == 0)
    }

    @Test("Without the confinement each of these attempts succeeds")
    func outsideUnconfined() async throws {
        let thread = try PrivateThread(name: "test-unconfined", waking: EventLoop(name: "test"))
        for index in attempts(outside: "/", inside: "/").indices {
            let outside = try fixture.scratch.makeFolder("outside\(index)")
            try fixture.scratch.makeFile("outside\(index)/secret", [7])
            try fixture.scratch.makeFile("destination/report", [1])
            let (name, attempt) = attempts(outside: outside, inside: fixture.folder)[index]
            #expect(await thread.perform { outcome(attempt) } == 0, "\(name)")
        }
    }

    @Test("A link inside that leads out leads the thread nowhere")
    func linkOut() async throws {
        let secret = try fixture.scratch.makeFile("secret", [7])
        try SystemCalls.call { symlink(secret.string, fixture.folder.appending("link").string) }
        let writer = try await writer()
        let link = fixture.folder.appending("link").string
        #expect(await writer.thread.perform { outcome { open(link, O_RDONLY | O_CLOEXEC) } } == EACCES)
        #expect(await writer.end() == 0)
    }

    @Test("The thread makes no device, pipe or socket, not even inside, and runs nothing")
    func insideOnlyWhatDocumentsNeed() async throws {
        let program = fixture.folder.appending("program").string
        try fixture.scratch.makeFile("destination/program", Array("#!/bin/sh\n".utf8), mode: 0o755)
        let writer = try await writer()
        let pipe = fixture.folder.appending("pipe").string
        #expect(await writer.thread.perform { outcome { mkfifo(pipe, 0o600) } } == EACCES)
        let exec = await writer.thread.perform {
            outcome {
                var none: [UnsafeMutablePointer<CChar>?] = [nil]
                return execve(program, &none, &none)
            }
        }
        #expect(exec == EACCES)
        #expect(await writer.end() == 0)
    }

    @Test("The thread opens no connection where the kernel can forbid it")
    func network() async throws {
        guard let version = try? Landlock.version(), version >= 4 else { return }
        let writer = try await writer()
        @Sendable func dial() -> Int32 {
            let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            guard number >= 0 else { return errno }
            let socket = OwnedDescriptor(takingOwnershipOf: number)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = UInt16(9).bigEndian
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            return outcome {
                withUnsafePointer(to: &address) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        connect(socket.rawValue, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                    }
                }
            }
        }
        #expect(await writer.thread.perform { dial() } == EACCES)
        #expect(dial() == ECONNREFUSED)
        #expect(await writer.end() == 0)
    }

    @Test("The writer's own thread is the confined one, and no other is")
    func writersThread() async throws {
        // In a process of its own: other tests confine threads as well.
        await #expect(processExitsWith: .success) { [path = fixture.scratch.path as String] in
            func confined() -> [String] {
                DocumentFixture.names(in: "/proc/self/task").filter { thread in
                    let path = FilePath("/proc/self/task/\(thread)/status")
                    let status = (try? SystemCalls.contents(of: path, limit: 4096)) ?? []
                    return String(decoding: status, as: UTF8.self).contains("NoNewPrivs:\t1")
                }
            }
            let scratch = FilePath(path)
            let content = DocumentFixture.content(3 << 20, seed: 50)
            let writer = try await DocumentWriter.begun(
                try DocumentFixture.tree(UInt64(content.count)), in: scratch.appending("destination"),
                ledger: try PartFileLedger(stateFolder: scratch.appending("parts")))
            try await writer.write(DocumentFixture.records(content))
            let threads = confined()
            #expect(threads.count == 1)
            let name = try SystemCalls.contents(
                of: FilePath("/proc/self/task/\(threads.first ?? "")/comm"), limit: 32)
            #expect(String(decoding: name, as: UTF8.self) == "baton-confined\n")
            _ = try await writer.commit()
            // Work goes on elsewhere unhindered: nothing was inherited.
            for _ in 0..<100 { await Task.yield() }
            #expect(access("/etc/passwd", R_OK) == 0)
            #expect(confined().count <= 1)
        }
        #expect(try DocumentFixture.read(fixture.document).count == 3 << 20)
    }

    @Test("A destination that is replaced by a link between the yes and the writing diverts nothing")
    func destinationReplaced() async throws {
        let elsewhere = try fixture.scratch.makeFolder("elsewhere")
        let opened = try DestinationFolder(fixture.folder)
        let moved = fixture.scratch.filePath.appending("moved")
        try SystemCalls.call { rename(fixture.folder.string, moved.string) }
        try SystemCalls.call { symlink(elsewhere.string, fixture.folder.string) }
        let writer = try await writer(0, in: opened)
        _ = try await writer.commit()
        #expect(DocumentFixture.names(in: elsewhere).isEmpty)
        #expect(DocumentFixture.names(in: moved) == ["report.pdf"])
    }

    @Test("The kernel knows the accesses that the version has")
    func versions() {
        #expect(Landlock.Access.all(inVersion: 1).rawValue == 0x1FFF)
        #expect(Landlock.Access.all(inVersion: 2).rawValue == 0x3FFF)
        #expect(Landlock.Access.all(inVersion: 3).rawValue == 0x7FFF)
        #expect(Landlock.Access.all(inVersion: 4).rawValue == 0x7FFF)
        #expect(Landlock.Access.all(inVersion: 9).rawValue == 0xFFFF)
    }
}
