// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import BatonTransport
import Foundation
import Glibc
import SwiftProtobuf
import Testing

@testable import BatonMessages

/// Another user of this machine, who waits where the node's socket would be: CWE-283, CWE-923.
@Suite("Attacks on the local socket", .enabled(if: geteuid() == 0, "it needs root to be another user"))
struct LocalSocketAttacks {
    private static let (owner, stranger): (UInt32, UInt32) = (65533, 65532)
    /// Says hello to the first who connects, and prints what it hears.
    private static let listener = """
        use Socket;
        socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die;
        bind($s, sockaddr_un($ARGV[0])) or die $!;
        listen($s, 1) or die;
        accept(my $c, $s) or die;
        send($c, pack("H*", $ARGV[1]), MSG_NOSIGNAL);
        my $part = "";
        while (sysread($c, $part, 4096)) { syswrite(STDOUT, $part); }
        """

    @Test("A socket behind which another user listens")
    func strangersSocket() async throws {
        let scratch = try ScratchFolder("attack")
        defer { scratch.remove() }
        let secret = "org.example.secret-plans"
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: scratch.path)
        try await attack("an offer is told to another user at the node's path") { defence in
            let (path, heard) = (scratch.path + "/\(defence).socket", try scratch.file("heard-\(defence)", ""))
            let process = try ChildProcess(
                [
                    "setpriv", "--reuid", "\(Self.stranger)", "--regid", "\(Self.stranger)", "--clear-groups", "perl",
                    "-e", Self.listener, path, Frame.hello().map { String(format: "%02x", $0) }.joined(),
                ], output: .file(heard.path))
            let loop = EventLoop(name: "program")
            var connection: Connection?
            try await eventually("it is known who listens") {
                do throws(TransportError) {
                    connection = try await Connection.connect(
                        toLocalSocket: path, as: Self.owner, requiringOwner: defence.isOn, on: loop)
                } catch {
                    return error.code == .refused
                }
                return true
            }
            if let connection {
                let offer = WireRequest.OneOf_Kind.offer(.with { $0.type = secret })
                let stream = try await connection.open(try WireRequest.with { $0.kind = offer }.encoded())
                try await eventually("it is heard") { try Data(contentsOf: heard).count > secret.utf8.count }
                withExtendedLifetime(stream) {}
                await connection.close()
            }
            try await eventually("the stranger has heard all") { !process.isRunning }
            return Outcome(succeeds: Array(try Data(contentsOf: heard)).holds(secret.utf8))
        }
    }
}
