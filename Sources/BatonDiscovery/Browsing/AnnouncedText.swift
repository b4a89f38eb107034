// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// A TXT record of an instance in a multicast DNS response (RFC 6762, section 18, and RFC 1035, section 4.1).
package struct AnnouncedText: Hashable, Sendable {
    /// The first label of the record's name.
    package var instance: String
    /// The record's data; empty when it is longer than ``TextRecord/maximumLength``.
    package var text: [UInt8]

    /// The most bytes of a packet (RFC 6762, section 17).
    package static let maximumPacket = 9000
    /// The most records of a packet that are looked at.
    private static let recordBound = 64
    private static let textType: UInt16 = 16
    private static let internetClass: UInt16 = 1

    /// Returns the TXT records among the answers of a response, for instances of a service type in `local.`.
    ///
    /// Parsing ends at the first malformed record. Records that are withdrawn (time to live 0) are left out: the browse
    /// says which instances have gone.
    ///
    /// - Parameter isUnicast: whether the response came to the port that asked. It repeats the questions then
    ///   (RFC 6762, section 6.7).
    package static func all(
        in packet: UnsafeRawBufferPointer, type: String, isUnicast: Bool = false
    ) -> [AnnouncedText] {
        var reader = MulticastPacketReader(packet: packet)
        // The response bit and a standard query, nothing else of the flags (section 18.4 to 18.11).
        guard reader.integer() as UInt16? != nil, let flags: UInt16 = reader.integer(), flags & 0xF800 == 0x8000,
            let questions: UInt16 = reader.integer(), questions == 0 || isUnicast,
            let answers: UInt16 = reader.integer(), reader.skip(4)
        else { return [] }
        for _ in 0..<min(Int(questions), recordBound) {
            guard reader.name() != nil, reader.skip(4) else { return [] }
        }
        let suffix = type.split(separator: ".").map(String.init) + ["local"]
        var found: [AnnouncedText] = []
        for _ in 0..<min(Int(answers), recordBound) {
            guard let name = reader.name(), let kind: UInt16 = reader.integer(), let group: UInt16 = reader.integer(),
                let timeToLive: UInt32 = reader.integer(), let length: UInt16 = reader.integer(),
                let data = reader.bytes(Int(length))
            else { break }
            // The upper bit of the class is the cache-flush bit (section 10.2).
            guard kind == textType, group & 0x7FFF == internetClass, timeToLive > 0, let instance = name.first,
                name.dropFirst().map({ $0.lowercased() }) == suffix
            else { continue }
            found.append(
                AnnouncedText(instance: instance, text: length > TextRecord.maximumLength ? [] : Array(data)))
        }
        return found
    }
}
