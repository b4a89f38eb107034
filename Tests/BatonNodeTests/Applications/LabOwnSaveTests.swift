// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// An application that still saves for its own device when another one takes its activity over.
@Suite(.serialized, .lab, .timeLimit(.minutes(3)))
struct LabOwnSaveTests {
    @Test("A save of becoming current that hangs costs no handoff its time, and its end nobody what he is to hear")
    func hanging() async throws {
        let pair = try await LabPair()
        defer { pair.lab.down() }
        let (origin, reader) = (pair.origin, pair.reader)
        origin.offer("Note", #","needsSave":true"#)
        _ = try await origin.nth("willSave", 1)
        let first = try pair.accept()
        try await reader.agree(nth: 1)
        _ = try await origin.nth("willSave", 2)
        try await origin.save(nth: 2, page: 7)
        #expect(try await reader.nth("continue", 1).userInfo?.page == 7)

        // The origin hears of the first handoff only after one more save of its own. A second device waits for it too.
        origin.offer("Note", #","needsSave":true"#)
        _ = try await origin.nth("willSave", 3)
        try await reader.continue(nth: 1)
        #expect(try await first.end().status == 0)
        let second = try pair.accept()
        try await reader.agree(nth: 2)
        _ = try await origin.nth("willSave", 4)
        try await origin.save(nth: 4, page: 9)
        #expect(try await reader.continue(nth: 2).userInfo?.page == 9)
        #expect(try await second.end().status == 0)
        try await eventually("both are told") { origin.count("wasContinued") == 2 }

        // Answers that nobody waits for any more change nothing.
        try await origin.save(nth: 1, page: 1)
        try await origin.save(nth: 3, page: 3)
        try await eventually("they are refused") { origin.count("error") == 2 }
        #expect(origin.count("failed") == 0 && origin.count("willSave") == 4)
    }
}
