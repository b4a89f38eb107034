// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import BatonEventLoop

@Suite("Memory for huge pages")
struct HugePageMemoryTests {
    /// The flags of the mapping at an address; nil if there is none.
    private func flags(at address: Int) throws -> Set<Substring>? {
        // String(contentsOfFile:) reads only the beginning of a file without a size.
        let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/self/smaps"))
        let text = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
        var isHere = false
        for line in text.split(separator: "\n") {
            let fields = line.split(separator: " ")
            if let bounds = fields.first?.split(separator: "-"), bounds.count == 2,
                let start = Int(bounds[0], radix: 16), let end = Int(bounds[1], radix: 16)
            {
                isHere = (start..<end).contains(address)
            } else if isHere, fields.first == "VmFlags:" {
                return Set(fields.dropFirst())
            }
        }
        return nil
    }

    @Test(
        "It is aligned to a huge page, requests huge pages, and is unmapped with its owner",
        arguments: [1, 4_200_000])
    func life(_ count: Int) throws {
        var memory: HugePageMemory? = HugePageMemory(count: count)
        let bytes = try #require(memory?.bytes)
        let address = Int(bitPattern: bytes.baseAddress)
        #expect(address.isMultiple(of: 2 << 20))
        #expect(bytes.count >= count && bytes.count < count + Int(getpagesize()))
        #expect(bytes.first == 0 && bytes.last == 0)
        bytes.initializeMemory(as: UInt8.self, repeating: 5)
        #expect(try flags(at: address)?.contains("hg") == true)
        memory = nil
        // Something else may have been mapped there meanwhile. It has not asked for huge pages.
        #expect(try flags(at: address)?.contains("hg") != true)
    }
}
