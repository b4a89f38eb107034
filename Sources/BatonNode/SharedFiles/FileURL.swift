// SPDX-License-Identifier: Apache-2.0

import BatonMessages

/// A URL of a file of this device, taken apart by hand: a name is bytes, which need not be text.
struct FileURL: Sendable, Hashable {
    /// Absolute, as the system has it.
    let path: [UInt8]
    /// The rest after the path, from the first `?` or `#` on. It is passed on unchanged.
    let suffix: String

    init(path: [UInt8], suffix: String = "") {
        self.path = path
        self.suffix = suffix
    }

    /// - Returns: `nil` where the URL names no file of this device: another host, no absolute path, a byte that no name
    ///   may have, an escape that is none.
    init?(_ text: String) {
        guard text.isOfScheme("file") else { return nil }
        var rest = text.utf8.dropFirst("file:".utf8.count)
        if rest.starts(with: "//".utf8) {
            rest = rest.dropFirst(2)
            let host = rest.prefix { $0 != UInt8(ascii: "/") }
            guard host.isEmpty || String(host)?.lowercased() == "localhost" else { return nil }
            rest = rest.dropFirst(host.count)
        }
        let end = rest.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? rest.endIndex
        guard let path = PercentCoding.decode(rest[..<end]), path.first == UInt8(ascii: "/"), !path.contains(0) else {
            return nil
        }
        self.path = path
        suffix = String(rest[end...]) ?? ""
    }

    /// `file:///…`
    var text: String { "file://" + PercentCoding.encode(path) + suffix }
}

extension String {
    /// Whether it begins with this scheme and a colon, in whatever case.
    func isOfScheme(_ scheme: String) -> Bool {
        let length = scheme.utf8.count
        return utf8.dropFirst(length).first == UInt8(ascii: ":")
            && utf8.prefix(length).elementsEqual(scheme.utf8) {
                ((UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0) == $1
            }
    }
}
