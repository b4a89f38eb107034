// SPDX-License-Identifier: Apache-2.0

/// Multicast DNS queries (RFC 6762, section 18, and RFC 1035, section 4.1).
enum MulticastQuery {
    /// The most questions of a packet that are looked at.
    private static let questionBound = 64
    private static let textType: UInt8 = 16
    private static let pointerType: UInt8 = 12

    /// Makes a query that asks for all instances of a service type, and for the TXT record of one instance.
    ///
    /// - Parameter instance: plausible (``InstanceName/isPlausible(_:)``).
    static func packet(type: String, instance: String) -> [UInt8] {
        let service = type.split(separator: ".").flatMap { label(String($0)) } + label("local") + [0]
        return [0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0]
            + service + [0, pointerType, 0, 1]
            + label(instance) + service + [0, textType, 0, 1]
    }

    /// The instances of a service type that a query asks about. It is empty for a response, and for a packet that is
    /// malformed at its beginning.
    static func instances(in packet: UnsafeRawBufferPointer, type: String) -> Set<String> {
        var reader = MulticastPacketReader(packet: packet)
        guard reader.integer() as UInt16? != nil, let flags: UInt16 = reader.integer(), flags & 0xF800 == 0,
            let questions: UInt16 = reader.integer(), reader.skip(6)
        else { return [] }
        let suffix = type.split(separator: ".").map(String.init) + ["local"]
        var found: Set<String> = []
        for _ in 0..<min(Int(questions), questionBound) {
            guard let name = reader.name(), reader.skip(4) else { break }
            if let instance = name.first, name.dropFirst().map({ $0.lowercased() }) == suffix {
                found.insert(instance.lowercased())
            }
        }
        return found
    }

    private static func label(_ text: String) -> [UInt8] { [UInt8(truncatingIfNeeded: text.utf8.count)] + text.utf8 }
}
