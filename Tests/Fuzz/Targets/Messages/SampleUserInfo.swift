// SPDX-License-Identifier: Apache-2.0

import BatonMessages
import FoundationEssentials
import SwiftProtobuf

/// User info with every type of value, for the seeds.
enum SampleUserInfo {
    static let id = Data(0..<16)

    static let message = WireDictionaryValue.with { info in
        info.entries = [
            "null": .with { $0.null = .init() }, "yes": .with { $0.boolean = true },
            "page": .with { $0.integer = -3 }, "large": .with { $0.unsignedInteger = .max },
            "real": .with { $0.real = 1.5 }, "text": .with { $0.string = "a\u{202E}b\n" },
            "data": .with { $0.data = id }, "date": .with { $0.date = 785_000_000.125 },
            "url": .with { $0.url = "https://example.org/a?b=c#d" }, "uuid": .with { $0.uuid = id },
            "list": .with { $0.array.elements = [.with { $0.integer = 1 }, .with { $0.string = "1" }] },
            "set": .with { $0.set.elements = [.with { $0.real = 1 }, .with { $0.boolean = true }] },
            "more": .with { $0.dictionary.entries = ["$date": .with { $0.real = .infinity }] },
        ]
    }

    static let texts = [
        #"{"null":null,"yes":true,"page":-3,"large":18446744073709551615,"real":1.5e-3,"text":"a\u202eb\n\ud83d\ude00"}"#,
        #"{"d":{"$data":"aGVsbG8="},"t":{"$date":"2026-11-21T09:30:00.125+01:00"},"s":{"$set":[1,2,1.0,true]}}"#,
        #"{"u":{"$url":"https://example.org/"},"i":{"$uuid":"6BA7B810-9DAD-11D1-80B4-00C04FD430C8"}}"#,
        #"{"n":{"$real":"nan"},"p":{"$real":"-inf"},"o":{"$dictionary":{"$date":1}},"l":[[],{},[[{}]]]}"#,
        #"{"t":{"$date":"0001-01-01"},"e":{"$date":-1.0e300},"z":{"$date":"9999-12-31T23:59:59.999Z"}}"#,
        "\u{FEFF}{ \"a\" : [ 0 , -0 , 0.0 , 1E9 ] }\n", "[1,2", #"{"a":1,"a":2}"#, #"{"a":"\ud800"}"#, "{\"a\":01}",
        String(repeating: "[", count: 100), "{\"a\":" + String(repeating: "[", count: 31),
    ]
}
