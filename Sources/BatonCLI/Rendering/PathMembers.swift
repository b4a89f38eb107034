// SPDX-License-Identifier: Apache-2.0

import Baton
import FoundationEssentials

extension JSONValue.Member {
    /// A path in `--json`. JSON strings are UTF-8: a path that is not also has a member with its bytes in base64, such
    /// as `pathBase64` for `path`.
    static func path(_ name: String, _ bytes: some Collection<UInt8>) -> [JSONValue.Member] {
        let text = JSONValue.Member(name, .string(String(decoding: bytes, as: UTF8.self)))
        guard String(validating: bytes, as: UTF8.self) == nil else { return [text] }
        return [text, JSONValue.Member("\(name)Base64", .string(Data(bytes).base64EncodedString()))]
    }
}
