// SPDX-License-Identifier: Apache-2.0

/// The numbers of TLS alerts (RFC 8446, section 6).
enum TLSAlert {
    static let badRecordMAC: UInt8 = 20
    static let badCertificate: UInt8 = 42
    static let unsupportedCertificate: UInt8 = 43
    static let certificateRevoked: UInt8 = 44
    static let unknownCA: UInt8 = 48
    static let decryptError: UInt8 = 51
    static let protocolVersion: UInt8 = 70
    static let certificateRequired: UInt8 = 116
    static let noApplicationProtocol: UInt8 = 120
}
