// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import Testing

@testable import BatonCLI

@Suite("The command of --serve")
struct ServedCommandTests {
    @Test("a shell only where one is asked for")
    func shell() throws {
        #expect(try ServedCommand("a | b", throughShell: true).arguments == ["-c", "a | b"].map { Array($0.utf8) })
        #expect(try ServedCommand("a | b", throughShell: false).arguments == ["|", "b"].map { Array($0.utf8) })
        #expect(throws: CommandLineSplitter.Problem.empty) { try ServedCommand(" ", throughShell: true) }
    }
}
