// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// A CMS_ContentInfo of type SignedData, parsed and not verified.
final class SignedMessage {
    let pointer: OpaquePointer

    /// Parses a message that fills `bytes` completely.
    init(_ bytes: [UInt8]) throws(TLSError) {
        ErrorQueue.clear()
        let (read, length) = bytes.withUnsafeBufferPointer { buffer in
            var cursor = buffer.baseAddress
            let read = d2i_CMS_ContentInfo(nil, &cursor, buffer.count)
            return (read, cursor.flatMap { end in buffer.baseAddress.map { end - $0 } })
        }
        guard let read else {
            throw TLSError(.badSignedMessage, "This is no signed message in DER.", reason: ErrorQueue.drain().text)
        }
        pointer = read
        guard length == bytes.count else {
            throw TLSError(.badSignedMessage, "Something follows the end of the signed message.")
        }
        guard let type = CMS_get0_type(pointer), OBJ_obj2nid(type) == NID_pkcs7_signed else {
            throw TLSError(.badSignedMessage, "The message is of a kind that has no signature.")
        }
    }

    deinit {
        CMS_ContentInfo_free(pointer)
    }

    /// The only signer, whose digest is SHA-2.
    var onlySigner: OpaquePointer {
        get throws(TLSError) {
            ErrorQueue.clear()
            let count = shim_CMS_signers_count(pointer)
            guard count == 1, let signer = shim_CMS_signer(pointer, 0) else {
                throw TLSError(.badSignedMessage, "The message has \(max(0, count)) signers, and exactly one counts.")
            }
            var digest: UnsafeMutablePointer<X509_ALGOR>?
            var object: OpaquePointer?
            CMS_SignerInfo_get0_algs(signer, nil, nil, &digest, nil)
            X509_ALGOR_get0(&object, nil, nil, digest)
            switch object.map({ OBJ_obj2nid($0) }) {
            case NID_sha256, NID_sha384, NID_sha512: return signer
            default: throw TLSError(.badSignedMessage, "The message is signed over a digest that is not SHA-2.")
            }
        }
    }

    /// The signed content. The signature covers exactly these bytes, so verification copies nothing.
    var content: [UInt8] {
        get throws(TLSError) {
            ErrorQueue.clear()
            guard let type = CMS_get0_eContentType(pointer), OBJ_obj2nid(type) == NID_pkcs7_data,
                let content = CMS_get0_content(pointer)?.pointee, let bytes = ASN1_STRING_get0_data(content)
            else { throw TLSError(.badSignedMessage, "The message does not carry the data that it signs.") }
            return Array(UnsafeBufferPointer(start: bytes, count: Int(ASN1_STRING_length(content))))
        }
    }
}
