// SPDX-License-Identifier: Apache-2.0

@testable import BatonTLS

/// A file of a web host that says that it is signed: the message, its certificates, and what is believed in the end.
enum CMSTarget: FuzzTarget {
    static let name = "cms"
    static let maximumLength = 4096

    private static let verifier = CMSVerifier(trusting: .certificates(pem: SignedFiles.authority))

    static func run(_ bytes: UnsafeRawBufferPointer) {
        let message = Array(bytes)
        do throws(TLSError) {
            let content = try verifier.content(of: message, signedFor: "example.org")
            // The keys are gone: whatever else is in the message, nothing else can have been signed.
            expect(content.elementsEqual(SignedFiles.content.utf8), "a content that nobody signed was believed")
        } catch {
            expect(!error.description.isEmpty && error.code != .library, "\(error)")
        }
        // What is behind the signature is read all the same.
        guard let unverified = try? SignedMessage(message), let content = try? unverified.content else { return }
        expect(content.count < message.count, "there is more in the message than the message has")
    }

    static func seeds() -> [[UInt8]] { SignedFiles.messages }
}
