// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import FoundationEssentials
import SwiftProtobuf

@testable import Baton
@testable import BatonMessages

/// User info as a peer's message carries it: read, checked, shown as JSON, and sent on.
enum UserInfoMessageTarget: FuzzTarget {
    static let name = "user-info-message"
    static let maximumLength = 4096

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        guard
            let message = try? WireDictionaryValue(
                serializedBytes: Array(bytes), options: MessageLimits.decoding),
            let info = try? UserInfo(message)
        else { return }
        try check(info)
    }

    /// The properties of any user info that was read.
    static func check(_ info: UserInfo) throws {
        expect(info.entries.values.allSatisfy(hasRealDates), "a date that is no point in time")
        let text = info.jsonText
        // A line for a terminal shows what it says and does nothing.
        expect(!text.unicodeScalars.contains { $0.isUnsafeToShow }, "the JSON has characters that act: \(text)")
        // It is JSON, whatever the values are, and means the same where it can be user info again.
        _ = try JSONParser.parse(text)
        if let again = try? UserInfo(json: text.utf8) {
            expect(again.jsonText == text, "the JSON means another user info: \(text) is \(again.jsonText)")
        }
        // JSON can say more than a message may, and that is not offered.
        guard (try? info.validate()) != nil else { return }
        let sent = try UserInfo(info.message)
        expect(sent.jsonText == text, "sending it on changes it: \(text) is \(sent.jsonText)")
    }

    private static func hasRealDates(_ value: UserInfoValue) -> Bool {
        switch value {
        case .date(let date): date.timeIntervalSinceReferenceDate.isFinite
        case .array(let values): values.allSatisfy(hasRealDates)
        case .set(let values): values.allSatisfy(hasRealDates)
        case .dictionary(let entries): entries.values.allSatisfy(hasRealDates)
        case .null, .boolean, .integer, .unsignedInteger, .real, .string, .data, .url, .uuid: true
        }
    }

    static func seeds() throws -> [[UInt8]] {
        let all = SampleUserInfo.message
        let whole: [UInt8] = try all.serializedBytes()
        let single = try all.entries.sorted { $0.key < $1.key }.map { entry in
            try WireDictionaryValue.with { $0.entries = [entry.key: entry.value] }.serializedBytes() as [UInt8]
        }
        return [whole] + single
    }
}
