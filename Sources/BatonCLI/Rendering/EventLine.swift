// SPDX-License-Identifier: Apache-2.0

import Baton

/// One event of a command as one line of JSON, with `event` and `time` first.
enum EventLine {
    static func text(_ event: String, _ members: [JSONValue.Member] = [], time: String = Moment.now) -> String {
        JSONValue.object(
            [JSONValue.Member("event", .string(event)), JSONValue.Member("time", .string(time))] + members
        ).text
    }
}

extension JSONValue {
    /// A count or a size. Readers of JSON keep integers exact up to 2^53.
    static func count(_ value: UInt64) -> JSONValue {
        Int64(exactly: value).map(JSONValue.integer) ?? .unsigned(value)
    }
}
