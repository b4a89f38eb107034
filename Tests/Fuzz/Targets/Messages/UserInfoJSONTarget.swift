// SPDX-License-Identifier: Apache-2.0

@testable import Baton

/// User info as JSON text, and the JSON reader itself.
enum UserInfoJSONTarget: FuzzTarget {
    static let name = "user-info-json"
    static let maximumLength = 4096

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        do throws(JSONError) {
            _ = try JSONParser.parse(bytes)
        } catch {
            expect(error.line >= 1 && error.column >= 1, "\(error)")
        }
        if let info = try? UserInfo(json: bytes) { try UserInfoMessageTarget.check(info) }
    }

    static func seeds() -> [[UInt8]] { SampleUserInfo.texts.map { Array($0.utf8) } }
}
