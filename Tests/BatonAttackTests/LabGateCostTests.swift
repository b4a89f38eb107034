// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonTestSupport
import Foundation
import Glibc
import Testing

extension LabAttackTests {
    /// Making a node compute for whoever knocks: the "SSL DoS" of THC (2011), by which one laptop kept a server busy.
    ///
    /// In the other suite, so that only one lab of theirs is there at a time.
    @Suite(.timeLimit(.minutes(3)))
    struct LabGateCostTests {
        /// Connects for each line of its input, sends it, and prints how many bytes were answered. It does not wait for
        /// the end of a connection that has an answer.
        private static let knocker = """
            import socket, sys
            answered = 0
            for line in sys.stdin:
                with socket.create_connection((sys.argv[1], int(sys.argv[2])), 30) as s:
                    try:
                        s.sendall(bytes.fromhex(line))
                        answered += len(s.recv(4096))
                    except ConnectionResetError: pass
            print(answered)
            """
        /// Prints the first message for each server name of its input, in hexadecimal digits.
        private static let greeter = """
            import ssl, sys
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.set_alpn_protocols(["baton/1"])
            for name in sys.stdin.read().split():
                outgoing = ssl.MemoryBIO()
                session = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
                try: session.do_handshake()
                except ssl.SSLWantReadError: pass
                print(outgoing.read().hex())
            """

        /// `Scripts/benchmark gate` measures what an optimised program needs, and fails above 100 µs. Here a stranger's
        /// connection is compared with a device's.
        @Test("What a stranger's connection costs", .nightly)
        func cost() async throws {
            let lab = try await HandoffLab(["laptop", "stranger"], members: 1)
            defer { lab.down() }
            let tap = try await Tap(lab, host: 1)
            let (node, port) = try await lab.startNode(1)
            try await eventually("it is announced") { try tap.now().announcement(of: 1) != nil }
            let record = try #require(try await tap.end().announcement(of: 1))
            let (advertisement, keys) = try lab.makeOpener().open(record.text)
            // The gate takes more tokens than these of one address.
            let tokens = (0..<400).map { _ in
                GateToken.serverName(
                    keys: keys, server: advertisement.device, gateNonce: advertisement.gateNonce)
            }
            let forged = [String](repeating: String(repeating: "a", count: 52) + ".baton.invalid", count: 1_000)
            // The first round fills the caches.
            _ = try await cost(of: Array(forged.prefix(100)), to: node, port, in: lab)
            let stranger = try await cost(of: forged, to: node, port, in: lab)
            let device = try await cost(of: tokens, to: node, port, in: lab)
            print("a stranger's connection: \(stranger.microseconds) µs of CPU, a device's: \(device.microseconds)")
            #expect(stranger.answered == 0 && device.answered > 0)
            await attack("1,000 first messages with a forged token that cost as much as a device's") {
                Outcome(succeeds: stranger.microseconds > 0.6 * device.microseconds)
            }
        }

        /// The cost for a node of a connection for each of these server names, and how many bytes it answers.
        private func cost(
            of names: [String], to node: HostCommand, _ port: Int, in lab: HandoffLab
        ) async throws -> (microseconds: Double, answered: Int) {
            let messages = try await output(of: ["python3", "-c", Self.greeter], to: names, in: lab)
            let before = try Self.ticks(of: node.program.processIdentifier)
            let knocker = ["python3", "-c", Self.knocker, "10.77.0.1", "\(port)"]
            let answered = try await output(of: knocker, to: messages, in: lab).first.flatMap { Int($0) } ?? 0
            let ticks = try Self.ticks(of: node.program.processIdentifier) - before
            return (ticks / Double(sysconf(Int32(_SC_CLK_TCK))) * 1e6 / Double(names.count), answered)
        }

        /// Returns the lines that a program on the stranger's host prints for these lines.
        private func output(of command: [String], to lines: [String], in lab: HandoffLab) async throws -> [String] {
            let input = lab.folder.appendingPathComponent("lines-\(UUID().uuidString)")
            try Data(lines.map { $0 + "\n" }.joined().utf8).write(to: input)
            let ended = try await lab.startProgram(2, command, input: input).end(within: .seconds(60))
            #expect(ended.status == 0, "\(ended.errors)")
            return ended.lines
        }

        /// The processor's time of a process so far, as the kernel counts it.
        private static func ticks(of process: Int32) throws -> Double {
            let stat = try String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
            // User and system, behind the name in parentheses: proc(5).
            let fields = stat[(stat.lastIndex(of: ")") ?? stat.startIndex)...].split(separator: " ")
            return fields[12...13].compactMap { Double($0) }.reduce(0, +)
        }
    }
}
