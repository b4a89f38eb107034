@testable import BatonAccount
@testable import BatonTLS

/// The certificate that the other side of a connection shows: who has a token of the account reaches it.
enum CertificateTarget: FuzzTarget {
    static let name = "certificate"
    static let maximumLength = 4096

    static func run(_ bytes: UnsafeRawBufferPointer) {
        do throws(TLSError) {
            let certificate = try Certificate(bytes)
            let id = try certificate.deviceID()
            expect(DeviceName.isDeviceID(id), "no device has this id: \(id)")
            // What names its own key is named by that alone.
            let again = try certificate.der.withUnsafeBufferPointer { (der) throws(TLSError) in
                try Certificate(UnsafeRawBufferPointer(der)).deviceID()
            }
            expect(again == id, "the certificate reads as another device's")
        } catch {
            expect(!error.description.isEmpty, "an error without a sentence")
        }
    }

    static func seeds() -> [[UInt8]] {
        let identity = AdvertisementTarget.Fixture.shared.identity
        let certificate = identity.certificate
        // Another key than the one that it names.
        var changed = certificate
        if let key = certificate.firstRange(of: identity.publicKey) { changed[key.lowerBound] ^= 1 }
        return [certificate, identity.authorityCertificate, changed, Array(certificate.dropLast()), []]
    }
}
