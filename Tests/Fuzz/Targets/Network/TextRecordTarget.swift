// SPDX-License-Identifier: Apache-2.0

@testable import BatonDiscovery
@testable import BatonProtocol

/// TXT records and instance names, as Avahi reports them.
enum TextRecordTarget: FuzzTarget {
    static let name = "text-record"
    static let maximumLength = 1300

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        let record = Array(bytes)
        if let strings = TextRecord.decode(record) {
            expect(record.count <= TextRecord.maximumLength, "a record of \(record.count) bytes was read")
            expect(strings.allSatisfy { (1...255).contains($0.count) }, "a string out of bounds")
            let again = TextRecord.decode(TextRecord.encode(strings))
            expect(again == strings, "the record changed on its way")
        }
        let name = String(decoding: record, as: UTF8.self)
        if InstanceName.isPlausible(name) {
            expect(name.utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x7A } && name.utf8.count <= 63, "\(name) passed")
        }
    }

    static func seeds() throws -> [[UInt8]] {
        let strings = [Array("v=1".utf8), Array(repeating: 1, count: 250), Array(repeating: 2, count: 250)]
        let record = TextRecord.encode(strings)
        return [
            record, record + [0], record + [9], [0], [], Array("abcdefghijk2".utf8), Array("a b".utf8),
        ]
    }
}
