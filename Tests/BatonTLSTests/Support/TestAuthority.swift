// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import COpenSSL
import Testing

@testable import BatonTLS

/// The kinds of key that tests make.
enum KeyKind: Sendable {
    case ed25519, p256, p384, rsa
}

/// A failure of OpenSSL to make an object for a test.
struct MintingFailed: Error {
    let what: String
}

/// A private key of a test.
final class TestKey: @unchecked Sendable {  // reason: never changed after init; OpenSSL counts references atomically
    let pointer: OpaquePointer

    init(_ kind: KeyKind) throws {
        let type =
            switch kind {
            case .ed25519: EVP_PKEY_ED25519
            case .p256, .p384: EVP_PKEY_EC
            case .rsa: EVP_PKEY_RSA
            }
        guard let context = EVP_PKEY_CTX_new_id(type, nil), EVP_PKEY_keygen_init(context) == 1 else {
            throw MintingFailed(what: "key context")
        }
        defer { EVP_PKEY_CTX_free(context) }
        switch kind {
        case .ed25519: break
        case .p256: EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1)
        case .p384: EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_secp384r1)
        case .rsa: EVP_PKEY_CTX_set_rsa_keygen_bits(context, 2048)
        }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen(context, &key) == 1, let key else { throw MintingFailed(what: "key") }
        pointer = key
    }

    deinit {
        EVP_PKEY_free(pointer)
    }

    /// The SubjectPublicKeyInfo in DER.
    var publicKeyInfo: [UInt8] {
        var out: UnsafeMutablePointer<UInt8>?
        let count = Int(i2d_PUBKEY(pointer, &out))
        defer { CRYPTO_free(out, "", 0) }
        return Array(UnsafeBufferPointer(start: out, count: max(0, count)))
    }

    var deviceID: String {
        DeviceID(publicKeyInfo: publicKeyInfo).description
    }

    var der: [UInt8] {
        var out: UnsafeMutablePointer<UInt8>?
        let count = Int(i2d_PrivateKey(pointer, &out))
        defer { CRYPTO_free(out, "", 0) }
        return Array(UnsafeBufferPointer(start: out, count: max(0, count)))
    }

    func pem() -> [UInt8] {
        bytes { PEM_write_bio_PrivateKey($0, pointer, nil, nil, 0, nil, nil) }
    }
}

/// A certificate of a test.
final class TestCertificate: @unchecked Sendable {  // reason: never changed once it is made
    let pointer: OpaquePointer

    init(adopting pointer: OpaquePointer) {
        self.pointer = pointer
    }

    deinit {
        X509_free(pointer)
    }

    var der: [UInt8] {
        bytes { i2d_X509_bio($0, pointer) }
    }

    func pem() -> [UInt8] {
        bytes { PEM_write_bio_X509($0, pointer) }
    }
}

/// The content of a test's leaf, apart from its key.
struct LeafProfile: Sendable {
    /// Subject alternative names in OpenSSL's form; nil is the valid one.
    var names: String?
    var notBefore = "20000101000000Z"
    var notAfter = "99991231235959Z"
    var usages: String? = "serverAuth,clientAuth"
    var keyUsage: String? = "critical,digitalSignature"
    var constraints = "critical,CA:FALSE"
}

/// An account of a test: a CA with the profile of the specification, and the certificates that it issues.
final class TestAuthority: Sendable {
    let key: TestKey
    let certificate: TestCertificate
    private let name: String

    init() throws {
        name = "Baton Account"
        key = try TestKey(.ed25519)
        certificate = try Self.certify(key, name, by: key, name)
    }

    /// Makes a CA below another, which the profile does not allow.
    init(below root: TestAuthority) throws {
        name = "Baton Middle"
        key = try TestKey(.ed25519)
        certificate = try Self.certify(key, name, by: root.key, root.name)
    }

    private static func certify(
        _ key: TestKey, _ name: String, by signer: TestKey, _ issuer: String
    ) throws -> TestCertificate {
        try mint(
            subject: name, key: key, issuer: issuer, signer: signer, from: "20000101000000Z", to: "99991231235959Z",
            extensions: [(NID_basic_constraints, "critical,CA:TRUE"), (NID_key_usage, "critical,keyCertSign,cRLSign")])
    }

    func issue(to device: TestKey, _ profile: LeafProfile = LeafProfile()) throws -> TestCertificate {
        var extensions: [(Int32, String)] = [(NID_basic_constraints, profile.constraints)]
        if let usage = profile.keyUsage { extensions.append((NID_key_usage, usage)) }
        if let usages = profile.usages { extensions.append((NID_ext_key_usage, usages)) }
        let names = profile.names ?? "DNS:" + device.deviceID + DeviceID.certificateNameSuffix
        if !names.isEmpty { extensions.append((NID_subject_alt_name, names)) }
        return try mint(
            subject: "device", key: device, issuer: name, signer: key, from: profile.notBefore,
            to: profile.notAfter, extensions: extensions)
    }

    /// A device of this account, ready for a context.
    func device(_ kind: KeyKind = .ed25519, _ profile: LeafProfile = LeafProfile()) throws -> TestDevice {
        let key = try TestKey(kind)
        return TestDevice(key: key, certificate: try issue(to: key, profile), authority: self)
    }
}

/// A key with its certificate and its account.
struct TestDevice: Sendable {
    let key: TestKey
    let certificate: TestCertificate
    let authority: TestAuthority

    var deviceID: String { key.deviceID }

    func identity() throws -> TLSIdentity {
        try Self.identity(certificate.der, key.der, authority.certificate.der)
    }

    func context(
        limits: TLSLimits = TLSLimits(), refuses: @escaping @Sendable (String) -> Bool = { _ in false },
        gate: TLSContext.Gate? = nil
    ) throws -> TLSContext {
        try TLSContext(identity: identity(), limits: limits, gate: gate, refuses: refuses)
    }

    static func identity(
        _ certificate: [UInt8], _ key: [UInt8], _ authority: [UInt8]
    ) throws -> TLSIdentity {
        try certificate.withUnsafeBytes { certificate in
            try key.withUnsafeBytes { key in
                try authority.withUnsafeBytes { authority in
                    try TLSIdentity(certificate: certificate, privateKey: key, accountCA: authority)
                }
            }
        }
    }
}

private func mint(
    subject: String, key: TestKey, issuer: String, signer: TestKey, from: String, to: String,
    extensions: [(Int32, String)]
) throws -> TestCertificate {
    guard let raw = X509_new() else { throw MintingFailed(what: "certificate") }
    let certificate = TestCertificate(adopting: raw)
    X509_set_version(raw, 2)
    ASN1_INTEGER_set_uint64(X509_get_serialNumber(raw), UInt64.random(in: 1...UInt64(Int64.max)))
    for (name, text) in [(X509_get_subject_name(raw), subject), (X509_get_issuer_name(raw), issuer)] {
        X509_NAME_add_entry_by_NID(name, NID_commonName, Int32(MBSTRING_FLAG | 1), text, -1, -1, 0)
    }
    guard ASN1_TIME_set_string(X509_getm_notBefore(raw), from) == 1,
        ASN1_TIME_set_string(X509_getm_notAfter(raw), to) == 1, X509_set_pubkey(raw, key.pointer) == 1
    else { throw MintingFailed(what: "times or key") }
    for (identifier, value) in extensions {
        guard let made = X509V3_EXT_conf_nid(nil, nil, identifier, value) else { throw MintingFailed(what: value) }
        X509_add_ext(raw, made, -1)
        X509_EXTENSION_free(made)
    }
    let digest = EVP_PKEY_get_base_id(signer.pointer) == EVP_PKEY_ED25519 ? nil : EVP_sha256()
    guard X509_sign(raw, signer.pointer, digest) > 0 else { throw MintingFailed(what: "signature") }
    return certificate
}

/// The bytes that a function writes to a memory BIO.
private func bytes(_ write: (OpaquePointer?) -> Int32) -> [UInt8] {
    guard let bio = BIO_new(BIO_s_mem()) else { return [] }
    defer { BIO_free(bio) }
    guard write(bio) == 1 else { return [] }
    var result = [UInt8](repeating: 0, count: 1 << 16)
    let count = BIO_read(bio, &result, Int32(result.count))
    return Array(result.prefix(max(0, Int(count))))
}
