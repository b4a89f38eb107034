// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import COpenSSL

@testable import BatonAccount
@testable import BatonTLS

/// The certificate that the other side of a connection shows: who has a token of the account reaches it, and who
/// answers a dial.
enum CertificateTarget: FuzzTarget {
    static let name = "certificate"
    static let maximumLength = 4096

    static func run(_ bytes: UnsafeRawBufferPointer) {
        do throws(TLSError) {
            let certificate = try Certificate(bytes)
            let id = try certificate.deviceID()
            expect(DeviceID(id)?.description == id, "no device has this id: \(id)")
            // The id depends on the key alone, and not on the certificate.
            let again = try certificate.der.withUnsafeBufferPointer { (der) throws(TLSError) in
                try Certificate(UnsafeRawBufferPointer(der)).deviceID()
            }
            expect(again == id, "the certificate reads as another device's")
            judge(certificate, named: id)
        } catch {
            expect(!error.description.isEmpty, "an error without a sentence")
        }
    }

    /// Of all certificates only those that the account has issued are taken for a device.
    private static func judge(_ certificate: BatonTLS.Certificate, named id: String) {
        guard let store = X509_STORE_CTX_new() else { fatalError("no memory") }
        defer { X509_STORE_CTX_free(store) }
        let isReady = X509_STORE_CTX_init(store, SSL_CTX_get_cert_store(context.pointer), certificate.pointer, nil)
        expect(isReady == 1, "no certificate can be judged")
        let fixture = AdvertisementTarget.Fixture.shared
        do {
            let device = try context.verifyPeer(store, expectedPeer: nil)
            expect(device == id && certificate.der == fixture.other.certificate, "\(id) is no device of the account")
        } catch {
            expect(!error.description.isEmpty, "a refusal without a sentence")
        }
    }

    private static let context = {
        do {
            return try TLSTarget.makeContext(AdvertisementTarget.Fixture.shared.identity)
        } catch { fatalError("\(error)") }
    }()

    static func seeds() -> [[UInt8]] {
        let identity = AdvertisementTarget.Fixture.shared.identity
        let certificate = identity.certificate
        // Another key than the one that it names.
        var changed = certificate
        if let key = certificate.firstRange(of: identity.publicKey) { changed[key.lowerBound] ^= 1 }
        let other = AdvertisementTarget.Fixture.shared.other.certificate
        return [certificate, identity.authorityCertificate, changed, Array(certificate.dropLast()), [], other]
    }
}
