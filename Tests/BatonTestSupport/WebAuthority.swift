// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A certificate authority for hosts of the web, with its certificates and signatures. The `openssl` command makes it
/// in a folder of its own, which is removed with it.
package final class WebAuthority: Sendable {
    /// The output of the command that failed.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// Why there can be none here; nil when there can be one.
    package static let unavailableReason: String? =
        FileManager.default.isExecutableFile(atPath: command) ? nil : "the openssl command is not installed"

    /// The files of a host's operator, in PEM.
    package struct Operator: Sendable {
        package let certificate: String
        package let key: String
    }

    /// How a certificate differs from a good one.
    package struct Profile: Sendable {
        package var purpose = "serverAuth"
        package var isExpired = false
        package var isSelfSigned = false

        package init(purpose: String = "serverAuth", isExpired: Bool = false, isSelfSigned: Bool = false) {
            self.purpose = purpose
            self.isExpired = isExpired
            self.isSelfSigned = isSelfSigned
        }
    }

    private static let command = "/usr/bin/openssl"

    /// The authority's own certificate.
    package let pem: String
    private let folder: ScratchFolder

    /// Makes a key and a certificate.
    package init(name: String = "Web Authority of a Test") async throws {
        folder = try ScratchFolder("web")
        let certificate = folder.path + "/authority.pem"
        try await Self.run(
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                "-subj", "/CN=\(name)", "-keyout", folder.path + "/authority.key",
                "-out", certificate,
            ])
        pem = try String(contentsOfFile: certificate, encoding: .utf8)
    }

    /// Issues a certificate for a host.
    package func issue(to host: String, _ profile: Profile = Profile()) async throws -> Operator {
        let file = folder.path + "/" + UUID().uuidString
        let extensions = """
            basicConstraints=critical,CA:FALSE
            keyUsage=critical,digitalSignature
            extendedKeyUsage=\(profile.purpose)
            subjectAltName=DNS:\(host)
            """
        try Data(extensions.utf8).write(to: URL(fileURLWithPath: file + ".ext"))
        try await Self.run(
            [
                "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=\(host)",
                "-keyout", file + ".key", "-out", file + ".csr",
            ])
        // `x509 -days` takes no negative number before OpenSSL 3.4; a certificate of no days has expired a moment ago.
        var sign = ["x509", "-req", "-in", file + ".csr", "-extfile", file + ".ext", "-out", file + ".pem"]
        sign += ["-days", profile.isExpired ? "0" : "30", "-set_serial", "\(UInt32.random(in: 1 ... .max))"]
        if profile.isSelfSigned {
            sign += ["-key", file + ".key"]
        } else {
            sign += ["-CA", folder.path + "/authority.pem"]
            sign += ["-CAkey", folder.path + "/authority.key"]
        }
        try await Self.run(sign)
        return Operator(certificate: file + ".pem", key: file + ".key")
    }

    /// Signs as `openssl cms -sign` does, each of the operators with a signature of its own.
    package func sign(
        _ content: [UInt8], as operators: [Operator], _ options: [String] = [], isDetached: Bool = false
    ) async throws -> [UInt8] {
        let file = folder.path + "/" + UUID().uuidString
        try Data(content).write(to: URL(fileURLWithPath: file))
        var arguments = ["cms", "-sign", "-binary", "-outform", "DER", "-in", file, "-out", file + ".cms"]
        if !isDetached { arguments.append("-nodetach") }
        for signer in operators { arguments += ["-signer", signer.certificate, "-inkey", signer.key] }
        try await Self.run(arguments + options)
        return Array(try Data(contentsOf: URL(fileURLWithPath: file + ".cms")))
    }

    private static func run(_ arguments: [String]) async throws {
        let folder = try ScratchFolder("web")
        defer { folder.remove() }
        let output = folder.path + "/output"
        let process = try ChildProcess([command] + arguments, output: .null, error: .file(output))
        // No waitUntilExit, which would hold one of the few threads that tests share.
        try await eventually("openssl \(arguments.first ?? "") has ended", within: .seconds(60)) { !process.isRunning }
        guard process.ending == .exited(0) else {
            let said = (try? String(contentsOfFile: output, encoding: .utf8)) ?? ""
            throw Failure(description: "openssl \(arguments.joined(separator: " ")): \(said)")
        }
    }
}
