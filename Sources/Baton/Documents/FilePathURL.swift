// SPDX-License-Identifier: Apache-2.0

import BatonMessages
package import FoundationEssentials

/// URLs of files whose names are bytes. A name that is not UTF-8 has no text: `path(percentEncoded: false)` and
/// `lastPathComponent` are empty.
extension URL {
    /// The URL of a file.
    ///
    /// - Parameter path: absolute.
    init(filePathBytes path: some Collection<UInt8>) {
        let url = URL(string: "file://" + PercentCoding.encode(path))
        self = url ?? URL(filePath: String(decoding: path, as: UTF8.self))
    }

    /// The path as the system has it.
    package var filePathBytes: [UInt8] { PercentCoding.decode(path(percentEncoded: true).utf8) ?? [] }

    /// The file's name for people.
    var fileName: String {
        String(decoding: filePathBytes.split(separator: UInt8(ascii: "/")).last ?? [], as: UTF8.self)
    }
}
