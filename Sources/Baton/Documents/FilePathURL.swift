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

    package var filePathBytes: [UInt8] { PercentCoding.decode(path(percentEncoded: true).utf8) ?? [] }

    var fileName: String {
        String(decoding: filePathBytes.split(separator: UInt8(ascii: "/")).last ?? [], as: UTF8.self)
    }
}

/// How the nodes name the document of an activity in its user info until the file is on this device.
extension UserInfo {
    private static let scheme = "baton-document"

    /// A copy with the file's URL in place of each `baton-document:`. The rest of such a URL, such as a fragment,
    /// stays.
    func withDocument(at url: URL) -> UserInfo {
        UserInfo(entries.mapValues { Self.replaced($0, by: url) })
    }

    private static func replaced(_ value: UserInfoValue, by file: URL) -> UserInfoValue {
        switch value {
        case .url(let url) where url.scheme == scheme:
            let suffix = url.absoluteString.drop { $0 != "?" && $0 != "#" }
            return .url(URL(string: file.absoluteString + suffix) ?? file)
        case .array(let elements): return .array(elements.map { replaced($0, by: file) })
        case .set(let elements): return .set(Set(elements.map { replaced($0, by: file) }))
        case .dictionary(let entries): return .dictionary(entries.mapValues { replaced($0, by: file) })
        case .null, .boolean, .integer, .unsignedInteger, .real, .string, .data, .date, .url, .uuid: return value
        }
    }
}
