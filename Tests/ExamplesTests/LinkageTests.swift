// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// The libraries of an application that uses the library `Baton` and nothing else of this package.
@Suite("Linkage") struct LinkageTests {
    private static let heavy = ["libssl", "libcrypto", "libavahi", "libdns_sd", "libcurl"]

    /// The shared libraries of a built program, as the dynamic linker finds them.
    private func libraries(of product: String) throws -> String {
        let (ending, text) = try ChildProcess.run(["ldd", Lab.product(product)])
        #expect(ending == .exited(0))
        return text
    }

    @Test(
        "A program with the library alone links neither OpenSSL nor Avahi",
        arguments: ["shopsnap", "monkeybrowser", "document-probe"])
    func light(product: String) throws {
        let libraries = try libraries(of: product)
        #expect(libraries.contains("libc.so"), "\(libraries)")
        for name in Self.heavy { #expect(!libraries.contains(name), "\(product) links \(name)") }
    }

    @Test("The command, which is the node as well, links OpenSSL: what the other test looks for would be found")
    func heavy() throws {
        let libraries = try libraries(of: "baton")
        #expect(["libssl", "libcrypto"].allSatisfy(libraries.contains), "\(libraries)")
    }
}
