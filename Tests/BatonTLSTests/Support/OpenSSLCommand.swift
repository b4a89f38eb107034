// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Glibc

@testable import BatonTLS

/// The `openssl` command at the other end of a socket, with a temporary folder.
///
/// A client of the command connects to a Unix-domain socket. A server of it listens on the loopback, at a port that it
/// picks and prints. (OpenSSL 3.0's server cannot name the peer of a Unix-domain socket, and closes it.)
final class OpenSSLCommand {
    struct Failed: Error {
        let what: String
    }

    /// The longest wait before a test fails.
    static let patience: Duration = .seconds(60)

    private let folder: ScratchFolder
    private var process: ChildProcess?
    private let standardOutput: URL
    private var listener: Int32 = -1
    /// The connected socket; the test's end of the wire.
    private(set) var socket: Int32 = -1

    /// The path of the command, nil if it is not installed.
    static let path: String? = ["/usr/bin/openssl", "/usr/local/bin/openssl", "/bin/openssl"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    /// Runs `openssl s_client` or `s_server` as a device that trusts `authority`; a nil device has no certificate.
    init(_ command: String, as device: TestDevice?, trusting authority: TestAuthority, _ options: [String]) throws {
        guard let path = Self.path else { throw Failed(what: "no openssl command") }
        folder = try ScratchFolder("tls")
        standardOutput = folder.url.appendingPathComponent("output")
        let address = folder.path + "/socket"
        var arguments = [command] + (command == "s_client" ? ["-unix", address] : ["-accept", "127.0.0.1:0"])
        arguments += ["-CAfile", try put("ca.pem", authority.certificate.pem())]
        arguments += ["-no-CAstore", "-no-CApath", "-verify_return_error"]
        if let device {
            arguments += ["-cert", try put("leaf.pem", device.certificate.pem())]
            arguments += ["-key", try put("key.pem", device.key.pem())]
        }
        if command == "s_client" { try listen(at: address) }
        let written = ChildProcess.Output.file(standardOutput.path)
        let process = try ChildProcess([path] + arguments + options, output: written, error: written)
        self.process = process
        try wait(command) {
            guard process.isRunning else { throw Failed(what: "the command ended: \(output)") }
            return command == "s_client" ? accepted() : connected()
        }
    }

    deinit {
        // The command ends before its folder is removed.
        process = nil
        if socket >= 0 { close(socket) }
        if listener >= 0 { close(listener) }
    }

    /// The output of the command.
    var output: String {
        (try? String(decoding: Data(contentsOf: standardOutput), as: UTF8.self)) ?? ""
    }

    func type(_ text: String) throws {
        try process?.input.write(contentsOf: Data(text.utf8))
    }

    func kill() {
        process?.signal(SIGKILL)
    }

    /// Carries bytes between the session and the command until the condition holds.
    ///
    /// - Returns: the bytes that the session has read.
    @discardableResult
    func drive(_ session: TLSSession, until isDone: ([UInt8], TLSSession.ReadResult) -> Bool) throws -> [UInt8] {
        let deadline = ContinuousClock.now + Self.patience
        var read: [UInt8] = []
        while ContinuousClock.now < deadline {
            let outcome = Result { try session.readAll() }
            while session.hasOutput {
                guard send(session) else { break }
            }
            let (bytes, end) = try outcome.get()
            read += bytes
            if isDone(read, end) { return read }
            try receive(session)
        }
        throw Failed(what: "time is up; the command said: \(output)")
    }

    private func send(_ session: TLSSession) -> Bool {
        let bytes = session.takeOutput(1 << 16)
        // The socket blocks, so it takes all of them.
        return Glibc.send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }

    /// Waits a little for bytes; an end of the stream is passed on.
    private func receive(_ session: TLSSession) throws {
        var item = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        guard poll(&item, 1, 50) > 0 else { return }
        var bytes = [UInt8](repeating: 0, count: min(1 << 16, session.receivableBytes))
        let count = recv(socket, &bytes, bytes.count, 0)
        if count > 0 {
            try session.give(Array(bytes.prefix(count)))
        } else {
            session.receiveEnd()
        }
    }

    func waitForExit() throws -> ChildProcess.Ending {
        try wait("the end of the command") { process?.isRunning == false }
        guard let ending = process?.ending else { throw Failed(what: "the command was not started") }
        return ending
    }

    /// Closes the socket without close_notify.
    func hangUp() {
        Glibc.shutdown(socket, Int32(SHUT_RDWR))
    }

    private func put(_ name: String, _ bytes: [UInt8]) throws -> String {
        let file = folder.url.appendingPathComponent(name)
        try Data(bytes).write(to: file)
        return file.path
    }

    func wait(_ what: String, _ condition: () throws -> Bool) throws {
        let deadline = ContinuousClock.now + Self.patience
        while try !condition() {
            guard ContinuousClock.now < deadline else { throw Failed(what: "waited for \(what): \(output)") }
            usleep(2000)
        }
    }

    private func withAddress<R>(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
    }

    private func newSocket(_ family: Int32) -> Int32 {
        Glibc.socket(family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    }

    private func listen(at path: String) throws {
        listener = newSocket(AF_UNIX)
        guard withAddress(path, { bind(listener, $0, $1) }) == 0, Glibc.listen(listener, 1) == 0 else {
            throw Failed(what: "no socket")
        }
    }

    private func accepted() -> Bool {
        var item = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
        guard poll(&item, 1, 50) > 0 else { return false }
        socket = accept(listener, nil, nil)
        return socket >= 0
    }

    /// Connects to the port that the command has printed.
    private func connected() -> Bool {
        let said = output
        guard let mark = said.range(of: "ACCEPT 127.0.0.1:"), let end = said[mark.upperBound...].firstIndex(of: "\n"),
            let port = UInt16(said[mark.upperBound..<end])
        else { return false }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        let descriptor = newSocket(AF_INET)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else {
            close(descriptor)
            return false
        }
        socket = descriptor
        return true
    }
}
