// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Foundation
import Testing

@testable import BatonTLS

/// Against the real `openssl` command, an independent implementation.
@Suite(.serialized, .enabled(if: OpenSSLCommand.path != nil, "the openssl command is not installed"))
struct CommandTests {
    let account: TestAuthority
    let own: TLSContext

    init() throws {
        account = try TestAuthority()
        own = try account.device().context()
    }

    @Test func clientOfTheCommand() throws {
        let device = try account.device()
        let command = try OpenSSLCommand(
            "s_client", as: device, trusting: account,
            [
                "-tls1_3", "-alpn", "baton/1", "-servername", "token.baton.invalid", "-quiet", "-verify_hostname",
                own.deviceID + DeviceID.certificateNameSuffix, "-verify", "1",
            ])
        let session = try TLSSession(server: own)
        try command.type("hello from the command\n")
        let read = try command.drive(session) { bytes, _ in bytes.last == UInt8(ascii: "\n") }
        #expect(read == Array("hello from the command\n".utf8))
        #expect(session.peerDeviceID == device.deviceID)
        #expect(session.peerCertificate == device.certificate.der)
        #expect(session.receivedServerName == "token.baton.invalid")
        try session.write(Array("hello from the session\n".utf8))
        session.shutdown()
        _ = try? command.drive(session) { _, _ in !session.hasOutput }
        try command.wait("the answer") { command.output.contains("hello from the session\n") }
    }

    @Test func serverOfTheCommand() throws {
        let device = try account.device()
        // The command sends tickets, which the client ignores.
        let command = try OpenSSLCommand(
            "s_server", as: device, trusting: account,
            ["-tls1_3", "-alpn", "baton/1", "-Verify", "1", "-rev"])
        let session = try TLSSession(client: own, serverName: "token.baton.invalid", expectedPeer: device.deviceID)
        try command.drive(session) { _, _ in session.isComplete }
        #expect(session.peerDeviceID == device.deviceID)
        try session.write(Array("abc\n".utf8))
        let read = try command.drive(session) { bytes, _ in bytes.count >= 4 }
        #expect(read == Array("cba\n".utf8))
    }

    @Test func largeTransferToTheCommand() throws {
        let device = try account.device(.p256)
        let command = try OpenSSLCommand(
            "s_client", as: device, trusting: account, ["-tls1_3", "-alpn", "baton/1", "-quiet"])
        var limits = TLSLimits()
        limits.keyUpdateInterval = 1 << 20
        let session = try TLSSession(server: try account.device().context(limits: limits))
        try command.drive(session) { _, _ in session.isComplete }
        let line = [UInt8](repeating: UInt8(ascii: "x"), count: 65535) + [UInt8(ascii: "\n")]
        for _ in 0..<64 {
            try session.write(line)
            try command.drive(session) { _, _ in !session.hasOutput }
        }
        #expect(session.keyUpdates == 3)
        try command.wait("all lines") { command.output.utf8.filter { $0 == UInt8(ascii: "x") }.count >= 64 * 65535 }
    }

    @Test(arguments: [
        ["-tls1_3", "-alpn", "h2"], ["-tls1_3"], ["-tls1_2", "-alpn", "baton/1"],
        ["-tls1_3", "-alpn", "baton/1", "-groups", "P-384"],
    ])
    func clientsOfTheCommandThatAreRefused(options: [String]) throws {
        let command = try OpenSSLCommand("s_client", as: try account.device(), trusting: account, options)
        let session = try TLSSession(server: own)
        let error = #expect(throws: TLSError.self) { try command.drive(session) { _, _ in false } }
        #expect(error?.code == .protocolViolation)
        command.hangUp()
        #expect(try command.waitForExit() != .exited(0))
    }

    @Test func clientOfTheCommandWithoutOrWithAForeignCertificate() throws {
        let options = ["-tls1_3", "-alpn", "baton/1"]
        let bare = try OpenSSLCommand("s_client", as: nil, trusting: account, options)
        var error = #expect(throws: TLSError.self) { try bare.drive(TLSSession(server: own)) { _, _ in false } }
        #expect(error?.code == .noCertificate)

        let stranger = try TestAuthority().device()
        let foreign = try OpenSSLCommand("s_client", as: stranger, trusting: account, options)
        error = #expect(throws: TLSError.self) { try foreign.drive(TLSSession(server: own)) { _, _ in false } }
        #expect(error?.code == .wrongAccount)
        try foreign.wait("the alert") { foreign.output.contains("alert unknown ca") }
    }

    @Test func serverOfTheCommandThatTrustsAnotherAccount() throws {
        let device = try account.device()
        let command = try OpenSSLCommand(
            "s_server", as: device, trusting: try TestAuthority(),
            ["-tls1_3", "-alpn", "baton/1", "-Verify", "1", "-rev"])
        let session = try TLSSession(client: own, serverName: "x", expectedPeer: device.deviceID)
        let error = #expect(throws: TLSError.self) { try command.drive(session) { _, _ in false } }
        // The client completed before the verification, and the refusal came as an alert. (The command sends this one
        // for a bad signature.)
        #expect(session.isComplete)
        #expect(error?.alert == TLSAlert.decryptError || error?.alert == TLSAlert.unknownCA)
    }

    @Test func commandThatIsKilledIsTruncation() throws {
        let device = try account.device()
        let command = try OpenSSLCommand(
            "s_client", as: device, trusting: account, ["-tls1_3", "-alpn", "baton/1", "-quiet"])
        let session = try TLSSession(server: own)
        try command.drive(session) { _, _ in session.isComplete }
        command.kill()
        let error = #expect(throws: TLSError.self) { try command.drive(session) { _, _ in false } }
        #expect(error?.code == .truncated)
    }
}
