// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import COpenSSL
import Testing

@testable import BatonTLS

@Suite struct IdentityTests {
    @Test func deviceIDOfAKnownKey() throws {
        // The Ed25519 public key of RFC 8032, section 7.1, test 1; the id was computed with `openssl dgst` and
        // base32(1).
        let key: [UInt8] = [
            0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07, 0x3a,
            0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a,
        ]
        let info: [UInt8] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00] + key
        #expect(DeviceID(publicKeyInfo: info).description == "a3r73d62fg5wbk2zkv66mhw3blwnwiyr")
    }

    @Test func partsThatDoNotBelongTogether() throws {
        let account = try TestAuthority()
        let (one, other) = (try account.device(), try account.device())
        let stranger = try TestAuthority()
        let cases: [([UInt8], [UInt8], [UInt8])] = [
            (one.certificate.der, other.key.der, account.certificate.der),
            (one.certificate.der, one.key.der, stranger.certificate.der),
            (one.certificate.der, one.key.der, one.certificate.der),
            ([], one.key.der, account.certificate.der),
            (one.certificate.der, [], account.certificate.der),
            (one.certificate.der, one.key.der, []),
            ([0x30, 0x82], one.key.der, account.certificate.der),
            (Array("-----BEGIN CERTIFICATE-----\n".utf8), one.key.der, account.certificate.der),
            (one.key.pem(), one.key.der, account.certificate.der),
            (one.certificate.der, one.certificate.der, account.certificate.der),
        ]
        for (certificate, key, authority) in cases {
            let error = #expect(throws: TLSError.self) { try TestDevice.identity(certificate, key, authority) }
            #expect(error?.code == .invalidIdentity)
            #expect(error?.message.hasSuffix(".") == true)
        }
    }

    @Test func anEncryptedKeyIsRefusedWithoutAskingATerminal() throws {
        let device = try TestAuthority().device()
        guard let bio = BIO_new(BIO_s_mem()) else { throw MintingFailed(what: "BIO") }
        defer { BIO_free(bio) }
        let phrase = Array("secret".utf8)
        #expect(PEM_write_bio_PrivateKey(bio, device.key.pointer, EVP_aes_256_cbc(), phrase, 6, nil, nil) == 1)
        var pem = [UInt8](repeating: 0, count: 4096)
        pem.removeLast(pem.count - Int(BIO_read(bio, &pem, 4096)))
        let authority = device.authority.certificate.der
        let error = #expect(throws: TLSError.self) { try TestDevice.identity(device.certificate.der, pem, authority) }
        #expect(error?.code == .invalidIdentity)
    }

    @Test func errorsOfOthersInTheQueueAreNotOurs() throws {
        let pair = try SessionPair().connected()
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 1)
        defer { buffer.deallocate() }
        func litter() {
            #expect(BIO_new_file("/does/not/exist", "r") == nil)
            #expect(ERR_peek_error() != 0)
        }
        litter()
        #expect(try pair.client.read(into: buffer) == .incomplete)
        litter()
        try pair.client.write([1])
        litter()
        let young = try SessionPair()
        litter()
        #expect(try !young.client.handshake())
        litter()
        #expect(try !young.server.handshake())
        litter()
        pair.client.shutdown()
        #expect(ERR_peek_error() == 0)
    }

    @Test func errorsSpeakPlainly() {
        let error = TLSError(.wrongAccount, "The peer belongs to another account.", reason: "unknown ca")
        #expect("\(error)" == "The peer belongs to another account. (unknown ca)")
        #expect("\(error.code)" == "wrongAccount")
        #expect(ErrorQueue.peerSent(99, "").message.contains("99"))
        #expect(ErrorQueue.peerSent(99, "").code == .peerAlert)
    }
}
