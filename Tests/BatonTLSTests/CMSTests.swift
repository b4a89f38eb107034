// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Testing

@testable import BatonTLS

/// Messages that the `openssl cms` command has signed.
@Suite(.enabled(if: WebAuthority.unavailableReason == nil, "\(WebAuthority.unavailableReason ?? "")"))
struct CMSTests {
    let authority: WebAuthority
    let verifier: CMSVerifier
    let content = Array(#"{"activitycontinuation":{"apps":["TEAM.org.example.reader"]}}"#.utf8)

    init() async throws {
        authority = try await WebAuthority()
        verifier = CMSVerifier(trusting: .certificates(pem: authority.pem))
    }

    /// The reasons of refusals, by a part of the sentence.
    private enum Refusal: String, CaseIterable {
        case notDER = "This is no signed message in DER."
        case trailing = "Something follows the end"
        case unsigned = "of a kind that has no signature"
        case tooLarge = "is larger than"
        case noContent = "does not carry the data"
        case signers = "exactly one counts"
        case weakDigest = "a digest that is not SHA-2"
        case untrusted = "not signed by an SSL server that a trusted authority knows"
        case wrongHost = "certificate is not for"
    }

    /// The reason of the refusal; nil if the content was accepted.
    private func refusal(of message: [UInt8], host: String = "example.org") -> Refusal? {
        do throws(TLSError) {
            #expect(try verifier.content(of: message, signedFor: host) == content)
            return nil
        } catch {
            #expect(error.code == .badSignedMessage)
            let refusal = Refusal.allCases.first { error.message.contains($0.rawValue) }
            #expect(refusal != nil, "\(error)")
            return refusal
        }
    }

    @Test(arguments: [[], ["-noattr"], ["-md", "sha512"]])
    func good(_ options: [String]) async throws {
        let message = try await authority.sign(content, as: [authority.issue(to: "example.org")], options)
        #expect(CMSVerifier.mayBeSigned(message))
        #expect(refusal(of: message) == nil)
    }

    @Test func binaryContentIsKeptByteForByte() async throws {
        let bytes = (0..<4096).map { UInt8(truncatingIfNeeded: $0) } + Array("a\nb\r\nc\r".utf8)
        let message = try await authority.sign(bytes, as: [authority.issue(to: "example.org")])
        #expect(try verifier.content(of: message, signedFor: "example.org") == bytes)
    }

    @Test func hosts() async throws {
        let exact = try await authority.sign(content, as: [authority.issue(to: "example.org")])
        #expect(refusal(of: exact, host: "EXAMPLE.org") == nil)
        for host in ["www.example.org", "example.com", "org", "", "example.org\0.example.com"] {
            #expect(refusal(of: exact, host: host) == .wrongHost)
        }
        let wildcard = try await authority.sign(content, as: [authority.issue(to: "*.example.org")])
        #expect(refusal(of: wildcard, host: "www.example.org") == nil)
        #expect(refusal(of: wildcard, host: "example.org") == .wrongHost)
        #expect(refusal(of: wildcard, host: "a.b.example.org") == .wrongHost)
    }

    @Test func twoSigners() async throws {
        let one = try await authority.issue(to: "example.org")
        let operators = [one, try await authority.issue(to: "example.org")]
        #expect(refusal(of: try await authority.sign(content, as: operators)) == .signers)
    }

    @Test func noSigner() async throws {
        // ContentInfo { signedData, [0] { SEQUENCE { 1, SET {}, SEQUENCE { data }, SET {} } } } (RFC 5652, section
        // 5.1).
        let data: [UInt8] = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01]
        let signedData: [UInt8] = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02]
        let inside: [UInt8] = [0x02, 0x01, 0x01, 0x31, 0x00, 0x30, UInt8(data.count)] + data + [0x31, 0x00]
        let sequence: [UInt8] = [0x30, UInt8(inside.count)] + inside
        let all = signedData + [0xa0, UInt8(sequence.count)] + sequence
        #expect(refusal(of: [0x30, UInt8(all.count)] + all) == .signers)
    }

    @Test(arguments: ["clientAuth", "emailProtection", "codeSigning"])
    func wrongPurpose(_ purpose: String) async throws {
        let signer = try await authority.issue(to: "example.org", .init(purpose: purpose))
        #expect(refusal(of: try await authority.sign(content, as: [signer])) == .untrusted)
    }

    @Test func untrusted() async throws {
        let selfSigned = try await authority.issue(to: "example.org", .init(isSelfSigned: true))
        #expect(refusal(of: try await authority.sign(content, as: [selfSigned])) == .untrusted)
        // An authority with the same name and another key.
        let stranger = try await WebAuthority()
        let message = try await stranger.sign(content, as: [stranger.issue(to: "example.org")])
        #expect(refusal(of: message) == .untrusted)
        // The system does not trust the authority of a test.
        let own = try await authority.sign(content, as: [authority.issue(to: "example.org")])
        #expect(throws: TLSError.self) { try CMSVerifier().content(of: own, signedFor: "example.org") }
    }

    @Test func expired() async throws {
        let signer = try await authority.issue(to: "example.org", .init(isExpired: true))
        let message = try await authority.sign(content, as: [signer])
        // A certificate is valid to the end of its last second.
        try await eventually("the certificate has expired") { refusal(of: message) == .untrusted }
    }

    @Test func tampered() async throws {
        let message = try await authority.sign(content, as: [authority.issue(to: "example.org")])
        let place = try #require(message.firstRange(of: Array("TEAM".utf8))).lowerBound
        var changed = message
        changed[place] ^= 1
        #expect(refusal(of: changed) == .untrusted)
        // Whichever byte is changed, only the signed content is ever accepted.
        for index in message.indices {
            var changed = message
            changed[index] ^= 0x40
            _ = refusal(of: changed)
        }
    }

    @Test func weakDigest() async throws {
        let message = try await authority.sign(content, as: [authority.issue(to: "example.org")], ["-md", "sha1"])
        #expect(refusal(of: message) == .weakDigest)
    }

    @Test func signerWithoutCertificate() async throws {
        let message = try await authority.sign(content, as: [authority.issue(to: "example.org")], ["-nocerts"])
        #expect(refusal(of: message) == .untrusted)
    }

    @Test func forms() async throws {
        let message = try await authority.sign(content, as: [authority.issue(to: "example.org")])
        #expect(refusal(of: message + [0]) == .trailing)
        #expect(refusal(of: message.dropLast()) == .notDER)
        #expect(refusal(of: []) == .notDER)
        #expect(refusal(of: content) == .notDER)
        #expect(!CMSVerifier.mayBeSigned(content))
        // A certificate is DER as well, and so is unsigned data.
        let data: [UInt8] = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01]
        let plain = data + [0xa0, 0x03, 0x04, 0x01, 0x7b]
        #expect(refusal(of: [0x30, UInt8(plain.count)] + plain) == .unsigned)
    }

    @Test func sizeAtTheBound() async throws {
        // A signature of ECDSA has one byte more or less, so the largest message ends a few bytes before the bound.
        let signer = try await authority.issue(to: "example.org")
        let overhead = try await authority.sign([UInt8](repeating: 0x20, count: 100_000), as: [signer]).count - 100_000
        let large = [UInt8](repeating: 0x20, count: CMSVerifier.maximumBytes - overhead - 8)
        let message = try await authority.sign(large, as: [signer])
        #expect(try verifier.content(of: message, signedFor: "example.org") == large)
        // A message at the bound is parsed, and one above it is not.
        #expect(refusal(of: [UInt8](repeating: 0x30, count: CMSVerifier.maximumBytes)) == .notDER)
        #expect(refusal(of: [UInt8](repeating: 0x30, count: CMSVerifier.maximumBytes + 1)) == .tooLarge)
    }

    @Test func detached() async throws {
        let message = try await authority.sign(content, as: [authority.issue(to: "example.org")], isDetached: true)
        #expect(refusal(of: message) == .noContent)
    }
}
